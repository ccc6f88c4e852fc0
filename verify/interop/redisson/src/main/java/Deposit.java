import java.util.concurrent.TimeUnit;
import java.util.function.LongConsumer;
import org.redisson.api.RFencedLock;
import org.redisson.api.RedissonClient;

/** The deposit of docs/migrating.md with Redisson. */
final class Deposit {
    private Deposit() {}

    static void deposit(RedissonClient redisson, LongConsumer add) throws InterruptedException {
        RFencedLock lock = redisson.getFencedLock("lock:account:42");
        Long token = lock.tryLockAndGetToken(3, 10, TimeUnit.SECONDS); // wait, lease
        if (token == null) {
            return; // somebody else had it for 3 s
        }
        try {
            add.accept(token);
        } finally {
            lock.unlock();
        }
    }
}
