import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;

/** What those who hold the lock of a key keep, to see whether they are alone. */
final class KeyState {
  final AtomicInteger inside = new AtomicInteger();
  final AtomicLong token = new AtomicLong();
}
