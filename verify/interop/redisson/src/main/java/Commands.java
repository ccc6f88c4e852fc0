import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.TimeUnit;
import org.redisson.Redisson;
import org.redisson.api.RFencedLock;
import org.redisson.api.RLock;
import org.redisson.api.RedissonClient;
import org.redisson.config.Config;

/** What a test may ask for. All times are milliseconds; a lease of -1 is the watchdog's. */
final class Commands {
  private final Map<String, RedissonClient> clients = new ConcurrentHashMap<>();
  private final Map<String, RLock> locks = new ConcurrentHashMap<>();

  Object run(String command, Map<String, String> args) throws InterruptedException {
    String client = args.get("client");
    switch (command) {
      case "version":
        return Redisson.class.getPackage().getImplementationVersion() + " on Java " + Runtime.version();
      case "open":
        clients.put(client, Redisson.create(config(args)));
        return null;
      case "close":
        clients.remove(client).shutdown();
        return null;
      default:
        return call(command, lock(client, args.get("kind"), args.get("name")), args);
    }
  }

  private static Config config(Map<String, String> args) {
    Config config = new Config().setNettyThreads(4).setThreads(4);
    config.setLockWatchdogTimeout(Long.parseLong(args.get("watchdog")));
    if (args.containsKey("cluster")) {
      config.useClusterServers()
          .addNodeAddress("redis://" + args.get("address"))
          .setMasterConnectionMinimumIdleSize(1)
          .setSubscriptionConnectionMinimumIdleSize(1);
    } else {
      config.useSingleServer()
          .setAddress("redis://" + args.get("address"))
          .setConnectionMinimumIdleSize(1)
          .setSubscriptionConnectionMinimumIdleSize(1);
    }
    return config;
  }

  /** A lock is an object that a client keeps, as in a program: Redisson stores the lease in it. */
  private RLock lock(String client, String kind, String name) {
    return locks.computeIfAbsent(
        client + " " + kind + " " + name,
        key -> make(clients.get(client), kind, name));
  }

  private static RLock make(RedissonClient client, String kind, String name) {
    switch (kind) {
      case "fenced":
        return client.getFencedLock(name);
      case "read":
        return client.getReadWriteLock(name).readLock();
      case "write":
        return client.getReadWriteLock(name).writeLock();
      case "fair":
        return client.getFairLock(name);
      default:
        return client.getLock(name);
    }
  }

  /** Locks and unlocks for so many milliseconds, with so many inside, and returns how often. */
  private static long holds(RLock lock, long milliseconds, long inside) throws InterruptedException {
    long holds = 0;
    for (long end = System.nanoTime() + 1_000_000 * milliseconds; System.nanoTime() < end; holds++) {
      lock.lock();
      try {
        Thread.sleep(inside);
      } finally {
        lock.unlock();
      }
    }
    return holds;
  }

  private static Object call(String command, RLock lock, Map<String, String> args) throws InterruptedException {
    long wait = Long.parseLong(args.getOrDefault("wait", "-1"));
    long lease = Long.parseLong(args.getOrDefault("lease", "-1"));
    switch (command) {
      case "lock":
        lock.lock(lease, TimeUnit.MILLISECONDS);
        return null;
      case "tryLock":
        return lock.tryLock(wait, lease, TimeUnit.MILLISECONDS);
      case "holds":
        return holds(lock, Long.parseLong(args.get("for")), Long.parseLong(args.get("inside")));
      case "unlock":
        lock.unlock();
        return null;
      case "forceUnlock":
        return lock.forceUnlock();
      case "isLocked":
        return lock.isLocked();
      case "isHeldByCurrentThread":
        return lock.isHeldByCurrentThread();
      case "getHoldCount":
        return lock.getHoldCount();
      case "remainTimeToLive":
        return lock.remainTimeToLive();
      case "lockAndGetToken":
        return ((RFencedLock) lock).lockAndGetToken();
      case "tryLockAndGetToken":
        return ((RFencedLock) lock).tryLockAndGetToken(wait, lease, TimeUnit.MILLISECONDS);
      case "getToken":
        return ((RFencedLock) lock).getToken();
      default:
        throw new IllegalArgumentException("no command is called " + command);
    }
  }
}
