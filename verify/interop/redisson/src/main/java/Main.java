import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.net.URLDecoder;
import java.nio.charset.StandardCharsets;
import java.util.HashMap;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;

/**
 * Uses Redisson's locks for the tests in Go. A command is a line on standard input: its number, the thread that is to
 * run it, what to do, and the arguments as a URL's query. The answer is a line of JSON on standard output, with the
 * number, as soon as there is one: threads answer in any order. The program ends with its standard input.
 *
 * <p>Redisson's holder is the thread, so each name of a thread is one thread, which runs its commands in order.
 */
public final class Main {
  private final Map<String, ExecutorService> threads = new ConcurrentHashMap<>();
  private final Commands commands = new Commands();
  private final PrintStream out;

  private Main(PrintStream out) {
    this.out = out;
  }

  public static void main(String[] args) throws IOException {
    Main main = new Main(new PrintStream(System.out, false, StandardCharsets.UTF_8));
    System.setOut(System.err); // whatever a library prints is no answer
    BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
    for (String line = in.readLine(); line != null; line = in.readLine()) {
      String[] words = line.split(" ", 4);
      main.threads
          .computeIfAbsent(words[1], name -> Executors.newSingleThreadExecutor(task -> thread(name, task)))
          .execute(() -> main.answer(words[0], words[2], arguments(words[3])));
    }
    Runtime.getRuntime().halt(0);
  }

  private static Thread thread(String name, Runnable task) {
    Thread thread = new Thread(task, name);
    thread.setDaemon(true);
    return thread;
  }

  private void answer(String id, String command, Map<String, String> args) {
    String outcome;
    try {
      Object value = commands.run(command, args);
      outcome = "\"value\":" + (value instanceof String ? quoted((String) value) : value);
    } catch (Exception e) {
      outcome = "\"error\":" + quoted(e.toString());
    }
    synchronized (out) {
      out.println("{\"id\":" + id + "," + outcome + "}");
      out.flush();
    }
  }

  /** Takes a URL's query apart: the values have no other limits. */
  private static Map<String, String> arguments(String query) {
    Map<String, String> args = new HashMap<>();
    for (String pair : query.split("&")) {
      String[] both = pair.split("=", 2);
      args.put(both[0], both.length > 1 ? URLDecoder.decode(both[1], StandardCharsets.UTF_8) : "");
    }
    return args;
  }

  private static String quoted(String text) {
    StringBuilder quoted = new StringBuilder("\"");
    for (char c : text.toCharArray()) {
      if (c == '"' || c == '\\') {
        quoted.append('\\').append(c);
      } else if (c < ' ') {
        quoted.append(String.format("\\u%04x", (int) c));
      } else {
        quoted.append(c);
      }
    }
    return quoted.append('"').toString();
  }
}
