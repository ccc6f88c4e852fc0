import java.util.Arrays;
import java.util.stream.LongStream;
import org.redisson.api.RFencedLock;

/** One thread that locks and unlocks. Redisson's holder is the thread, as the context is fencelock's. */
final class Worker extends Thread {
  private final Load load;
  private final int number;
  private final RFencedLock[] locks; // by key

  // A worker that hangs is read while it may still come back: these are guarded by this.
  private long since; // when its present wait began
  private boolean waiting; // false when it does not wait, or the wait was counted
  private long[] waits = new long[1024];
  private int waited;
  private long pairs; // within the window

  Worker(Load load, int number, RFencedLock[] locks) {
    this.load = load;
    this.number = number;
    this.locks = locks;
    setDaemon(true);
  }

  @Override
  public void run() {
    while (load.phase() != Phase.ENDING) {
      try {
        turn();
      } catch (Exception e) {
        load.failed(e);
      }
    }
  }

  /** One acquire, the section, and the unlock. */
  private void turn() throws Exception {
    int key = load.pick(number);
    synchronized (this) {
      since = System.nanoTime();
      waiting = true;
    }
    long token;
    try {
      token = locks[key].lockAndGetToken();
    } finally {
      waited();
    }
    try {
      load.section(key, token);
    } finally {
      locks[key].unlock();
    }
    if (load.phase() == Phase.MEASURING) {
      synchronized (this) {
        pairs++;
      }
    }
  }

  /** Counts the wait that ends now; one that goes on, too, where a drain gives up on it. */
  synchronized void waited() {
    if (waiting && load.phase() != Phase.WARMING) {
      if (waited == waits.length) {
        waits = Arrays.copyOf(waits, 2 * waits.length);
      }
      waits[waited++] = System.nanoTime() - since;
    }
    waiting = false;
  }

  synchronized long pairs() {
    return pairs;
  }

  synchronized LongStream waits() {
    return Arrays.stream(Arrays.copyOf(waits, waited));
  }
}
