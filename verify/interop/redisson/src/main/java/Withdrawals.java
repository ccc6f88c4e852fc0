import java.util.concurrent.TimeUnit;
import org.redisson.api.RFencedLock;
import org.redisson.api.RedissonClient;

/** Takes money out of accounts. examples/ported is its port to Go. */
public final class Withdrawals {
  /** Where the balances are. A call with a token older than one that the account has seen throws. */
  public interface Accounts {
    long read(String id, long token);

    void write(String id, long token, long balance);
  }

  private final RedissonClient redisson;
  private final Accounts accounts;

  public Withdrawals(RedissonClient redisson, Accounts accounts) {
    this.redisson = redisson;
    this.accounts = accounts;
  }

  /** Returns whether the account had so much; null if others were at it for 3 s. */
  public Boolean withdraw(String id, long amount) {
    RFencedLock lock = redisson.getFencedLock("account:" + id);
    Long token = lock.tryLockAndGetToken(3, 10, TimeUnit.SECONDS);
    if (token == null) {
      return null;
    }
    try {
      long balance = accounts.read(id, token);
      if (balance < amount) {
        return false;
      }
      accounts.write(id, token, balance - amount);
      return true;
    } finally {
      lock.unlock();
    }
  }
}
