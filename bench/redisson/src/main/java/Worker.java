import java.util.Arrays;
import java.util.concurrent.ThreadLocalRandom;
import java.util.stream.LongStream;

/** One thread that locks and unlocks. Redisson's holder is the thread, as the context is fencelock's. */
final class Worker extends Thread {
  private final Load load;
  private final int number;
  private final Acquirable[] targets; // by key
  private final Acquirable[] readers; // their sides that read; null where they have none

  // A worker that hangs is read while it may still come back: these are guarded by this.
  private long since; // when its present wait began
  private boolean waiting; // false when it does not wait, or the wait was counted
  private final Times waits = new Times();
  private final Times uses = new Times(); // waits, sections and unlocks together
  private long pairs; // within the window

  Worker(Load load, int number, Acquirable[] targets, Acquirable[] readers) {
    this.load = load;
    this.number = number;
    this.targets = targets;
    this.readers = readers;
    setDaemon(true);
  }

  @Override
  public void run() {
    try {
      load.rest(ThreadLocalRandom.current().nextDouble()); // the callers begin one after the other
    } catch (InterruptedException e) {
      return; // the load is over
    }
    while (load.phase() != Phase.ENDING) {
      try {
        turn();
        load.rest(-Math.log(1 - ThreadLocalRandom.current().nextDouble()));
      } catch (Exception e) {
        load.failed(e);
      }
    }
  }

  /** One acquire, the section, and the unlock. */
  private void turn() throws Exception {
    int key = load.pick(number);
    boolean reading = load.reading(number);
    long begin = System.nanoTime();
    synchronized (this) {
      since = begin;
      waiting = load.timed(reading);
    }
    Acquirable.Hold hold;
    try {
      hold = (reading ? readers : targets)[key].acquire();
    } finally {
      waited();
    }
    try {
      load.section(key, hold.token(), reading);
    } finally {
      hold.release().run();
    }
    Phase phase = load.phase();
    if (phase == Phase.WARMING) {
      return;
    }
    synchronized (this) {
      if (load.timed(reading)) {
        uses.add(System.nanoTime() - begin);
      }
      if (phase == Phase.MEASURING) {
        pairs++;
      }
    }
  }

  /** Counts the wait that ends now. */
  synchronized void waited() {
    if (waiting && load.phase() != Phase.WARMING) {
      waits.add(System.nanoTime() - since);
    }
    waiting = false;
  }

  /** Counts the wait that goes on, where a drain gives up on it. */
  synchronized void hangs() {
    if (waiting) {
      uses.add(System.nanoTime() - since);
    }
    waited();
  }

  synchronized long pairs() {
    return pairs;
  }

  synchronized LongStream waits() {
    return waits.all();
  }

  synchronized LongStream uses() {
    return uses.all();
  }

  /** A list of times. */
  private static final class Times {
    private long[] times = new long[1024];
    private int count;

    void add(long time) {
      if (count == times.length) {
        times = Arrays.copyOf(times, 2 * count);
      }
      times[count++] = time;
    }

    LongStream all() {
      return Arrays.stream(Arrays.copyOf(times, count));
    }
  }
}
