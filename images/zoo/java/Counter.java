import com.sun.net.httpserver.HttpExchange;
import com.sun.net.httpserver.HttpServer;
import java.io.IOException;
import java.net.InetSocketAddress;
import java.nio.charset.StandardCharsets;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.Executors;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;

/** The counter of images/counter on a JVM: GET / adds one, GET /peek does not, GET /healthz. */
public final class Counter {
    private static final AtomicLong count = new AtomicLong();
    private static final AtomicLong ticks = new AtomicLong();
    private static final Map<Long, String> visitors = new ConcurrentHashMap<>();

    public static void main(String[] arguments) throws IOException {
        var timer = Executors.newScheduledThreadPool(1);
        timer.scheduleAtFixedRate(ticks::incrementAndGet, 100, 100, TimeUnit.MILLISECONDS);
        var server = HttpServer.create(new InetSocketAddress(8080), 128);
        server.createContext("/", Counter::answer);
        server.setExecutor(Executors.newFixedThreadPool(4));
        server.start();
    }

    private static void answer(HttpExchange exchange) throws IOException {
        var path = exchange.getRequestURI().getPath();
        if (path.equals("/")) {
            var number = count.incrementAndGet();
            visitors.put(number, "visitor " + number);
        }
        var text = path.equals("/healthz") ? "ok" : "{\"count\":%d,\"visitors\":%d,\"ticks\":%d}"
                .formatted(count.get(), visitors.size(), ticks.get());
        var body = text.getBytes(StandardCharsets.UTF_8);
        exchange.sendResponseHeaders(200, body.length);
        try (exchange; var out = exchange.getResponseBody()) {
            out.write(body);
        }
    }
}
