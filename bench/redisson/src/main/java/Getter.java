import java.io.BufferedInputStream;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.net.Socket;
import java.nio.charset.StandardCharsets;

/** One connection for the GET inside of sections, as bare as can be: it is not what is measured. */
final class Getter implements AutoCloseable {
  private static final byte[] GET = "*2\r\n$3\r\nGET\r\n$5\r\nvalue\r\n".getBytes(StandardCharsets.US_ASCII);
  private final Socket socket;
  private final InputStream in;
  private final OutputStream out;

  Getter(String host, int port) throws IOException {
    socket = new Socket(host, port);
    socket.setTcpNoDelay(true);
    in = new BufferedInputStream(socket.getInputStream());
    out = socket.getOutputStream();
  }

  /** Asks for a key that is not there: the answer is one line. */
  synchronized void get() throws IOException {
    out.write(GET);
    for (int b = in.read(); b != '\n'; b = in.read()) {
      if (b < 0) {
        throw new IOException("the server closed the connection of the GET");
      }
    }
  }

  @Override
  public void close() throws IOException {
    socket.close();
  }
}
