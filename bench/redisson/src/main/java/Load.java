import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.atomic.AtomicReference;
import java.util.stream.LongStream;
import org.redisson.Redisson;
import org.redisson.api.RFencedLock;
import org.redisson.api.RedissonClient;
import org.redisson.config.Config;
import org.redisson.config.SingleServerConfig;

/** The threads of a round, and the checks of load.go. */
final class Load implements AutoCloseable {
  private final String family;
  private final String inside;
  private final int hotKeys;
  private final long pauseNanos; // in the mean, after each use
  private final KeyState[] keys;
  private final List<RedissonClient> clients = new ArrayList<>();
  private final List<Worker> workers = new ArrayList<>();
  private final Getter getter;
  private final AtomicLong overlaps = new AtomicLong();
  private final AtomicLong outOfOrder = new AtomicLong();
  private final AtomicLong errors = new AtomicLong();
  private final AtomicReference<String> firstError = new AtomicReference<>();
  private final CountDownLatch over = new CountDownLatch(1); // the phase is ending
  private volatile Phase phase = Phase.WARMING;
  private volatile boolean cancelled;

  Load(Map<String, String> args) throws Exception {
    family = args.get("family");
    inside = args.get("inside");
    hotKeys = Integer.parseInt(args.get("hot"));
    pauseNanos = Long.parseLong(args.get("pause_ns"));
    keys = new KeyState[Integer.parseInt(args.get("keys"))];
    for (int i = 0; i < keys.length; i++) {
      keys[i] = new KeyState();
    }
    String[] direct = args.get("direct").split(":");
    getter = new Getter(direct[0], Integer.parseInt(direct[1]));

    List<RFencedLock[]> locks = new ArrayList<>(); // by client and key
    for (int i = 0; i < Integer.parseInt(args.get("clients")); i++) {
      RedissonClient client = Redisson.create(config(args.get("address"), Boolean.parseBoolean(args.get("small"))));
      clients.add(client);
      RFencedLock[] own = new RFencedLock[keys.length];
      for (int k = 0; k < keys.length; k++) {
        own[k] = client.getFencedLock(args.get("prefix") + ":" + k);
      }
      locks.add(own);
    }
    for (int i = 0; i < Integer.parseInt(args.get("goroutines")); i++) {
      workers.add(new Worker(this, i, locks.get(i % clients.size())));
    }
  }

  /** Small: for one of many clients, which would have 48 threads and 25 connections each. */
  private static Config config(String address, boolean small) {
    Config config = new Config();
    SingleServerConfig server = config.useSingleServer().setAddress("redis://" + address);
    if (small) {
      config.setThreads(2).setNettyThreads(2);
      server.setConnectionMinimumIdleSize(1);
    }
    return config;
  }

  void start() {
    workers.forEach(Thread::start);
  }

  Phase phase() {
    return phase;
  }

  void enter(Phase next) {
    phase = next;
    if (next == Phase.ENDING) {
      over.countDown();
    }
  }

  /** Pauses for so much of the mean, or until the load ends. */
  void rest(double part) throws InterruptedException {
    if (pauseNanos > 0) {
      over.await((long) (part * pauseNanos), TimeUnit.NANOSECONDS);
    }
  }

  /** Returns which key a worker takes next. */
  int pick(int worker) {
    switch (family) {
      case "own":
        return worker;
      case "one":
        return 0;
      default:
        ThreadLocalRandom random = ThreadLocalRandom.current();
        return random.nextInt(random.nextBoolean() ? hotKeys : keys.length);
    }
  }

  /** Checks that the holder is alone and that its token is the largest so far, and does the mode's work. */
  void section(int key, long token) throws Exception {
    KeyState state = keys[key];
    if (state.inside.incrementAndGet() != 1) {
      overlaps.incrementAndGet();
    }
    if (state.token.getAndSet(token) >= token) {
      outOfOrder.incrementAndGet();
    }
    try {
      if (phase != Phase.ENDING) {
        work();
      }
    } finally {
      state.inside.decrementAndGet();
    }
  }

  private void work() throws Exception {
    switch (inside) {
      case "get":
        getter.get();
        break;
      case "1ms":
        Thread.sleep(1);
        break;
      case "2ms":
        Thread.sleep(2);
        break;
      default:
        break;
    }
  }

  /** Counts an error, and slows a worker down that does nothing but fail. */
  void failed(Exception e) {
    if (cancelled) {
      return; // it hung, and was cancelled
    }
    errors.incrementAndGet();
    firstError.compareAndSet(null, e.toString());
    try {
      Thread.sleep(1);
    } catch (InterruptedException again) {
      Thread.currentThread().interrupt();
    }
  }

  /**
   * Waits for the threads after the end of the load, and returns what they saw. Those that are not back after the grace
   * hang: they are interrupted, and left behind if that does not help either.
   */
  String drain(long graceMillis, long abandonMillis) throws InterruptedException {
    long hung = missing(graceMillis);
    long stuck = 0;
    if (hung > 0) {
      cancelled = true;
      workers.forEach(Worker::hangs); // it waited this long at least
      workers.forEach(Thread::interrupt);
      stuck = missing(abandonMillis);
    }
    String error = firstError.get();
    return "{\"tally\":{\"pairs\":" + Json.array(workers.stream().mapToLong(Worker::pairs))
        + ",\"clients\":" + Json.array(LongStream.range(0, workers.size()).map(i -> i % clients.size()))
        + ",\"waits_ns\":" + Json.array(workers.stream().flatMapToLong(Worker::waits))
        + ",\"uses_ns\":" + Json.array(workers.stream().flatMapToLong(Worker::uses))
        + ",\"overlaps\":" + overlaps + ",\"out_of_order\":" + outOfOrder + ",\"tokens\":true"
        + ",\"hung\":" + hung + ",\"stuck\":" + stuck + ",\"errors\":" + errors
        + (error == null ? "" : ",\"first_error\":" + Json.quoted(error)) + "}}";
  }

  /** Returns how many threads are not back in time. */
  private long missing(long withinMillis) throws InterruptedException {
    long until = System.nanoTime() + withinMillis * 1_000_000;
    for (Worker worker : workers) {
      long left = (until - System.nanoTime()) / 1_000_000;
      if (left > 0) {
        worker.join(left);
      }
    }
    return workers.stream().filter(Thread::isAlive).count();
  }

  @Override
  public void close() throws Exception {
    getter.close();
    clients.parallelStream().forEach(RedissonClient::shutdown);
  }
}
