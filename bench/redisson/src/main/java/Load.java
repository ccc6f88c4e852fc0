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
import org.redisson.api.RedissonClient;
import org.redisson.config.Config;
import org.redisson.config.SingleServerConfig;

/** The threads of a round, and the checks of load.go. */
final class Load implements AutoCloseable {
  private final String family;
  private final String inside;
  private final int hotKeys;
  private final int room; // of which each use takes its weight
  private final boolean readWrite;
  private final int reads; // so many of ten uses
  private final boolean lone; // the first worker writes, all others read, and the times are the first one's
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
  private volatile boolean tokens; // some were seen

  Load(Map<String, String> args) throws Exception {
    family = args.get("family");
    inside = args.get("inside");
    hotKeys = Integer.parseInt(args.get("hot"));
    room = Integer.parseInt(args.get("room"));
    readWrite = args.get("kind").equals("rwlock");
    reads = Integer.parseInt(args.get("reads"));
    lone = Boolean.parseBoolean(args.get("lone"));
    pauseNanos = Long.parseLong(args.get("pause_ns"));
    keys = new KeyState[Integer.parseInt(args.get("keys"))];
    for (int i = 0; i < keys.length; i++) {
      keys[i] = new KeyState();
    }
    String[] direct = args.get("direct").split(":");
    getter = new Getter(direct[0], Integer.parseInt(direct[1]));

    List<Acquirable[]> targets = new ArrayList<>(); // by client and key
    List<Acquirable[]> readers = new ArrayList<>(); // their sides that read
    for (int i = 0; i < Integer.parseInt(args.get("clients")); i++) {
      RedissonClient client = Redisson.create(config(args.get("address"), Boolean.parseBoolean(args.get("small"))));
      clients.add(client);
      targets.add(targets(client, args.get("kind"), args.get("prefix")));
      readers.add(readWrite ? targets(client, args.get("kind") + "-read", args.get("prefix")) : null);
    }
    for (int i = 0; i < Integer.parseInt(args.get("goroutines")); i++) {
      workers.add(new Worker(this, i, targets.get(i % clients.size()), readers.get(i % clients.size())));
    }
  }

  private Acquirable[] targets(RedissonClient client, String kind, String prefix) {
    Acquirable[] own = new Acquirable[keys.length];
    for (int k = 0; k < keys.length; k++) {
      own[k] = Acquirable.of(client, kind, prefix + ":" + k, room);
    }
    return own;
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

  /** Tells whether the next use of a worker reads. */
  boolean reading(int worker) {
    if (lone) {
      return worker > 0;
    }
    return reads > 0 && ThreadLocalRandom.current().nextInt(10) < reads;
  }

  /** Tells whether the times of a use count. */
  boolean timed(boolean reading) {
    return !lone || !reading;
  }

  /** Checks that no more are inside than may be and that the token is the largest so far, and does the mode's work. */
  void section(int key, long token, boolean reading) throws Exception {
    KeyState state = keys[key];
    int weight = readWrite && !reading ? room : 1;
    if (state.inside.addAndGet(weight) > room) {
      overlaps.incrementAndGet();
    }
    if (token != 0) {
      tokens = true;
      if (state.token.getAndSet(token) >= token) {
        outOfOrder.incrementAndGet();
      }
    }
    try {
      if (phase != Phase.ENDING) {
        work();
      }
    } finally {
      state.inside.addAndGet(-weight);
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
        + ",\"overlaps\":" + overlaps + ",\"out_of_order\":" + outOfOrder + ",\"tokens\":" + tokens
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
