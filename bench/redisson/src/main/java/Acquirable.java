import java.util.concurrent.TimeUnit;
import org.redisson.api.RFencedLock;
import org.redisson.api.RLock;
import org.redisson.api.RPermitExpirableSemaphore;
import org.redisson.api.RedissonClient;

/** What a worker acquires: Redisson's object of the kind that the mode has. */
interface Acquirable {
  /** Waits for a hold. */
  Hold acquire() throws Exception;

  /** A hold. The token is 0 where the kind has none. */
  record Hold(long token, Runnable release) {}

  private static Hold held(RLock lock) {
    lock.lock();
    return new Hold(0, lock::unlock);
  }

  /** Returns the object of this name. As many as there is room for have a hold of it at a time. */
  static Acquirable of(RedissonClient client, String kind, String name, int room) {
    switch (kind) {
      case "semaphore":
        RPermitExpirableSemaphore semaphore = client.getPermitExpirableSemaphore(name);
        semaphore.trySetPermits(room);
        return () -> {
          String permit = semaphore.acquire(30, TimeUnit.SECONDS);
          return new Hold(0, () -> semaphore.release(permit));
        };
      case "rwlock":
        RLock writes = client.getReadWriteLock(name).writeLock();
        return () -> held(writes);
      case "rwlock-read":
        RLock reads = client.getReadWriteLock(name).readLock();
        return () -> held(reads);
      default:
        RFencedLock lock = client.getFencedLock(name);
        return () -> new Hold(lock.lockAndGetToken(), lock::unlock);
    }
  }
}
