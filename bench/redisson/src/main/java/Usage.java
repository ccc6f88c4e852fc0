import com.sun.management.OperatingSystemMXBean;
import com.sun.management.ThreadMXBean;
import java.lang.management.ManagementFactory;

/** What this JVM has used until now. */
final class Usage {
  private static final OperatingSystemMXBean SYSTEM =
      (OperatingSystemMXBean) ManagementFactory.getOperatingSystemMXBean();
  private static final ThreadMXBean THREADS = (ThreadMXBean) ManagementFactory.getThreadMXBean();

  private Usage() {}

  static String now() {
    long at = System.nanoTime();
    long cpu = SYSTEM.getProcessCpuTime();
    long bytes = 0; // by the threads that live; none of a load ends within its window
    for (long b : THREADS.getThreadAllocatedBytes(THREADS.getAllThreadIds())) {
      bytes += Math.max(b, 0);
    }
    return "{\"usage\":{\"at_ns\":" + at + ",\"cpu_ns\":" + cpu + ",\"alloc_bytes\":" + bytes + "}}";
  }
}
