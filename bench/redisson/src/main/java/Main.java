import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.net.URLDecoder;
import java.nio.charset.StandardCharsets;
import java.util.HashMap;
import java.util.Map;
import org.redisson.Redisson;

/**
 * Puts the load of a round on Redis through Redisson. It takes a command a line from standard input, and
 * answers each with a line of JSON on standard output; remote.go is the other side, and worker.go the same in Go. It
 * ends with its standard input.
 */
public final class Main {
  private Load load;

  public static void main(String[] args) throws IOException {
    PrintStream out = new PrintStream(System.out, true, StandardCharsets.UTF_8);
    System.setOut(System.err); // whatever a library prints is no answer
    Main main = new Main();
    BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
    for (String line = in.readLine(); line != null; line = in.readLine()) {
      try {
        out.println(main.answer(line));
      } catch (Exception e) {
        out.println("{\"error\":" + Json.quoted(e.toString()) + "}");
      }
    }
    Runtime.getRuntime().halt(0);
  }

  private String answer(String line) throws Exception {
    String[] words = line.split(" ", 2);
    Map<String, String> args = arguments(words.length > 1 ? words[1] : "");
    switch (words[0]) {
      case "hello":
        return "{\"versions\":{\"redisson\":" + Json.quoted(Redisson.class.getPackage().getImplementationVersion())
            + ",\"java\":" + Json.quoted(Runtime.version().toString()) + "}}";
      case "start":
        load = new Load(args);
        load.start();
        return Usage.now();
      case "measure":
        load.enter(Phase.MEASURING);
        return Usage.now();
      case "end":
        load.enter(Phase.ENDING);
        return Usage.now();
      case "drain":
        return load.drain(Long.parseLong(args.get("grace_ms")), Long.parseLong(args.get("abandon_ms")));
      case "close":
        load.close();
        return "{}";
      default:
        throw new IllegalArgumentException("no command is called " + words[0]);
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
}
