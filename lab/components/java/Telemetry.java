package lab;

import com.sun.net.httpserver.HttpExchange;
import com.sun.net.httpserver.HttpServer;
import java.io.IOException;
import java.net.InetSocketAddress;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayDeque;
import java.util.Collection;
import java.util.Deque;
import java.util.LinkedHashMap;
import java.util.Locale;
import java.util.Map;
import java.util.concurrent.Executors;
import java.util.function.BooleanSupplier;
import java.util.stream.Collectors;
import org.apache.kafka.clients.producer.Producer;
import org.apache.kafka.clients.producer.ProducerRecord;

/** What happens: metrics by HTTP, and reports in JSON to the recorder's topic. */
final class Telemetry {
    private static final long NANOS = System.nanoTime();
    private static final double EPOCH = System.currentTimeMillis() / 1000.0; // a step of the wall clock moves no duration
    private static final String MOST_REQUESTS = "64"; // at a time; a probe and a scrape are two
    private static final String SILENT_S = "10"; // until a client has said what it wants
    private static final double[] REBALANCES = {0.005, 0.01, 0.05, 0.1, 0.25, 0.5, 1, 2, 3, 5, 10, 30};
    private static final double[] BATCHES = {.005, .01, .025, .05, .075, .1, .25, .5, .75, 1, 2.5, 5, 7.5, 10};

    private final Producer<byte[], byte[]> producer;
    private final String topic;
    private final String pod;
    private final Map<String, Double> values = new LinkedHashMap<>(); // by the metric's name and labels
    private final Deque<long[]> recent = new ArrayDeque<>(); // when messages became durable, ns, and their number

    Telemetry(Settings settings, Producer<byte[], byte[]> producer) {
        this.producer = producer;
        topic = settings.text("reports-topic");
        pod = settings.pod;
        for (String name : new String[] {"messages_processed_total", "inflight", "assigned_partitions", "rebalances_total"}) {
            values.put(name, 0.0);
        }
        observe("rebalance_duration_seconds", REBALANCES, null);
        observe("batch_duration_seconds", BATCHES, null);
    }

    /** Epoch seconds that never go back. */
    static double now() {
        return EPOCH + (System.nanoTime() - NANOS) / 1e9;
    }

    /** When the kernel started this process, epoch seconds with a resolution of 10 ms. */
    static double created() {
        try {
            String stat = Files.readString(Path.of("/proc/self/stat"));
            String[] behindName = stat.substring(stat.lastIndexOf(')') + 2).split(" ");
            double up = Double.parseDouble(Files.readString(Path.of("/proc/uptime")).split(" ")[0]);
            return now() - (up - Double.parseDouble(behindName[19]) / 100);
        } catch (IOException noProc) {
            return now();
        }
    }

    /**
     * Whether a request's Host is an address, or a name of this machine or of a cluster. A page in a browser may give its own
     * name this program's address, and read what that answers; its Host is then that name.
     */
    static boolean local(String host) {
        String name = host == null ? "" : host.toLowerCase(Locale.ROOT).replaceAll("\\[.*]|:\\d*$", ""); // an IPv6 address has []
        return !name.contains(".") || name.matches("[0-9.]+") || name.endsWith(".svc") || name.endsWith(".cluster.local");
    }

    /** Serves /metrics, /healthz and /readyz on daemon threads to those who GET them by a local name. */
    void serve(String address, int port, BooleanSupplier ready, BooleanSupplier healthy) throws IOException {
        System.setProperty("jdk.httpserver.maxConnections", MOST_REQUESTS);
        System.setProperty("sun.net.httpserver.maxReqTime", SILENT_S);
        HttpServer server = HttpServer.create(new InetSocketAddress(address, port), 0);
        server.setExecutor(Executors.newCachedThreadPool(work -> {
            Thread made = new Thread(work, "http");
            made.setDaemon(true);
            return made;
        }));
        server.createContext("/", exchange -> {
            if (!exchange.getRequestMethod().equals("GET")) {
                answer(exchange, 501, "only GET\n");
                return;
            }
            if (!local(exchange.getRequestHeaders().getFirst("Host"))) {
                answer(exchange, 403, "another host\n");
                return;
            }
            String path = exchange.getRequestURI().getPath();
            boolean metrics = path.equals("/metrics");
            boolean known = metrics || path.equals("/readyz") || path.equals("/healthz");
            boolean good = metrics || (path.equals("/readyz") ? ready : healthy).getAsBoolean();
            answer(exchange, !known ? 404 : good ? 200 : 503, metrics ? metrics() : known && good ? "ok\n" : "no\n");
        });
        server.start();
    }

    private static void answer(HttpExchange exchange, int code, String text) throws IOException {
        byte[] body = bytes(text);
        exchange.getResponseHeaders().set("Content-Type", "text/plain; version=0.0.4");
        exchange.sendResponseHeaders(code, body.length);
        exchange.getResponseBody().write(body);
        exchange.close();
    }

    /** Queues a report; fields are names and values in turn. */
    void say(String event, Object... fields) {
        if (topic.isEmpty()) {
            return;
        }
        Map<String, Object> row = new LinkedHashMap<>();
        row.put("pod", pod);
        row.put("event", event);
        row.put("t", now());
        row.put("mono", System.nanoTime() / 1e9);
        for (int at = 0; at < fields.length; at += 2) {
            row.put((String) fields[at], fields[at + 1]);
        }
        producer.send(new ProducerRecord<>(topic, bytes(pod), bytes(json(row))));
    }

    /** Reports a change of assignment that began at a time, ns, or at nobody knows when where that is null. */
    void owned(String event, Collection<Integer> partitions, int owned, Long began) {
        say(event, "partitions", partitions, "owned", owned, "seconds", began == null ? null : since(began));
        set("assigned_partitions", owned);
    }

    void rebalanced(Long began) {
        add("rebalances_total", 1);
        if (began != null) {
            observe("rebalance_duration_seconds", REBALANCES, since(began));
        }
    }

    void committed(boolean good) {
        add("commits_total{outcome=\"" + (good ? "ok" : "failed") + "\"}", 1);
    }

    /** Counts a batch whose receipts are durable. */
    void done(int count, double seconds) {
        add("messages_processed_total", count);
        observe("batch_duration_seconds", BATCHES, seconds);
        synchronized (values) {
            recent.add(new long[] {System.nanoTime(), count});
        }
    }

    void set(String name, double value) {
        synchronized (values) {
            values.put(name, value);
        }
    }

    private void add(String name, double value) {
        synchronized (values) {
            values.merge(name, value, Double::sum);
        }
    }

    /** Counts a value of a histogram; null makes the histogram alone. */
    private void observe(String name, double[] buckets, Double value) {
        for (double most : buckets) {
            add(name + "_bucket{le=\"" + most + "\"}", value != null && value <= most ? 1 : 0);
        }
        add(name + "_bucket{le=\"+Inf\"}", value == null ? 0 : 1);
        add(name + "_sum", value == null ? 0 : value);
        add(name + "_count", value == null ? 0 : 1);
    }

    private String metrics() throws IOException {
        String status = Files.readString(Path.of("/proc/self/status")); // with a line such as "VmRSS:     90000 kB"
        String resident = status.replaceAll("(?s).*VmRSS:\\s*(\\d+) kB.*", "$1");
        Duration cpu = ProcessHandle.current().info().totalCpuDuration().orElse(Duration.ZERO);
        set("process_resident_memory_bytes", Double.parseDouble(resident) * 1024);
        set("process_cpu_seconds_total", cpu.toNanos() / 1e9);
        synchronized (values) {
            while (!recent.isEmpty() && since(recent.peek()[0]) > 1) {
                recent.remove();
            }
            values.put("consume_rate", (double) recent.stream().mapToLong(one -> one[1]).sum());
            return values.entrySet().stream().map(one -> one.getKey() + " " + one.getValue() + "\n")
                    .collect(Collectors.joining());
        }
    }

    static double since(long began) {
        return (System.nanoTime() - began) / 1e9;
    }

    static byte[] bytes(String text) {
        return text.getBytes(StandardCharsets.UTF_8);
    }

    /** A mapping, a list, a text, a number, a truth or nothing, as JSON. */
    static String json(Object value) {
        if (value instanceof Map<?, ?> map) {
            return map.entrySet().stream().map(one -> json(one.getKey()) + ":" + json(one.getValue()))
                    .collect(Collectors.joining(",", "{", "}"));
        }
        if (value instanceof Collection<?> list) {
            return list.stream().map(Telemetry::json).collect(Collectors.joining(",", "[", "]"));
        }
        if (value instanceof Double number) {
            return String.format(Locale.ROOT, "%.6f", number);
        }
        if (value instanceof String text) {
            return "\"" + text.replace("\\", "\\\\").replace("\"", "\\\"").replaceAll("[\\x00-\\x1f]", " ") + "\"";
        }
        return String.valueOf(value);
    }
}
