import java.util.function.LongConsumer;
import java.util.stream.LongStream;

/** As much of JSON as the answers need. */
final class Json {
  private Json() {}

  static String quoted(String text) {
    StringBuilder quoted = new StringBuilder("\"");
    for (char c : String.valueOf(text).toCharArray()) {
      if (c == '"' || c == '\\') {
        quoted.append('\\').append(c);
      } else if (c < ' ') {
        quoted.append(' ');
      } else {
        quoted.append(c);
      }
    }
    return quoted.append('"').toString();
  }

  static String array(LongStream values) {
    StringBuilder array = new StringBuilder("[");
    LongConsumer add = v -> array.append(array.length() > 1 ? "," : "").append(v);
    values.forEachOrdered(add);
    return array.append(']').toString();
  }
}
