package lab;

import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Properties;
import java.util.TreeMap;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/** The settings of the lab's Python program, under the same names: --process-ms defaults to PROCESS_MS, and so on. */
final class Settings {
    private static final Map<String, String> DEFAULTS = Map.ofEntries(
            Map.entry("bootstrap-servers", ""),
            Map.entry("kafka-settings", ""),
            Map.entry("pod-ip", "127.0.0.1"),
            Map.entry("metrics-port", "9090"),
            Map.entry("group", "enrich"),
            Map.entry("topic", "events"),
            Map.entry("topics", "1"),
            Map.entry("topic-partitions", "0"),
            Map.entry("receipts-topic", "receipts"),
            Map.entry("reports-topic", "reports"),
            Map.entry("process-ms", "2-10"),
            Map.entry("concurrency", "6"),
            Map.entry("batch-ms", "50"),
            Map.entry("poll-ms", "50"),
            Map.entry("balancer", "cooperative-sticky"),
            Map.entry("membership", "dynamic"),
            Map.entry("commit", "manual"),
            Map.entry("commit-interval-ms", "5000"),
            Map.entry("drain", "on"),
            Map.entry("drain-timeout", "20"),
            Map.entry("client-settings", "lab"),
            Map.entry("heartbeat-ms", "500"),
            Map.entry("session-timeout-ms", "10000"),
            Map.entry("partition-fetch-kib", "64"),
            Map.entry("max-poll-ms", "300000"),
            Map.entry("auto-offset-reset", "earliest"),
            Map.entry("start-s", "0"),
            Map.entry("partition-warmup-ms", "0"),
            Map.entry("metadata-refresh-ms", "300000"),
            Map.entry("liveness-s", "120"),
            Map.entry("join", "on"));
    private static final Map<String, String> ASSIGNORS = Map.of(
            "cooperative-sticky", "org.apache.kafka.clients.consumer.CooperativeStickyAssignor",
            "range", "org.apache.kafka.clients.consumer.RangeAssignor",
            "roundrobin", "org.apache.kafka.clients.consumer.RoundRobinAssignor",
            "consumer", "");
    private static final Pattern FLAG = Pattern.compile("--?([a-z-]+)=(.*)", Pattern.DOTALL);
    private static final Pattern PAIR = Pattern.compile("\"([^\"\\\\]*)\"\\s*:\\s*\"((?:[^\"\\\\]|\\\\.)*)\"");

    private final Map<String, String> given = new TreeMap<>();
    final String pod;
    final List<String> topics = new ArrayList<>();
    final double low;
    final double high;
    final double concurrency;
    final int batch;
    final int poll;

    /** Throws IllegalArgumentException, in one line, for what is not allowed. */
    Settings(String[] arguments, Map<String, String> environment) {
        for (Map.Entry<String, String> one : DEFAULTS.entrySet()) {
            String variable = one.getKey().replace('-', '_').toUpperCase(Locale.ROOT);
            given.put(one.getKey(), environment.getOrDefault(variable, one.getValue()));
        }
        for (String argument : arguments) {
            Matcher found = FLAG.matcher(argument);
            if (!found.matches() || !DEFAULTS.containsKey(found.group(1))) {
                throw new IllegalArgumentException(argument + ": there is no such flag");
            }
            given.put(found.group(1), found.group(2));
        }
        pod = environment.getOrDefault("HOSTNAME", "consumer-" + ProcessHandle.current().pid());
        if (text("bootstrap-servers").isEmpty()) {
            throw refused("bootstrap-servers", "host:port");
        }
        if (!ASSIGNORS.containsKey(text("balancer"))) {
            throw refused("balancer", "cooperative-sticky, range, roundrobin, or consumer");
        }
        topics.add(text("topic"));
        for (int number = 2; number <= whole("topics"); number++) {
            topics.add(text("topic") + "-" + number);
        }
        String[] cost = text("process-ms").split("-");
        try {
            low = Double.parseDouble(cost[0]);
            high = Double.parseDouble(cost[cost.length - 1]);
        } catch (NumberFormatException error) {
            throw refused("process-ms", "6 or 2-10");
        }
        concurrency = number("concurrency");
        batch = taking("batch-ms");
        poll = Math.max(batch, taking("poll-ms"));
    }

    private IllegalArgumentException refused(String name, String allowed) {
        return new IllegalArgumentException("--" + name + ": '" + text(name) + "' is not allowed; allowed: " + allowed);
    }

    /** Messages that take so long at the pod's rate. */
    private int taking(String name) {
        return (int) Math.max(1, Math.rint(number(name) * concurrency / ((low + high) / 2)));
    }

    String text(String name) {
        return given.get(name);
    }

    boolean is(String name, String value) {
        return text(name).equals(value);
    }

    double number(String name) {
        try {
            return Double.parseDouble(text(name));
        } catch (NumberFormatException error) {
            throw refused(name, "a number");
        }
    }

    int whole(String name) {
        return (int) number(name);
    }

    /** The trial's number for a partition of a topic. */
    int number(String topic, int partition) {
        return topics.indexOf(topic) * whole("topic-partitions") + partition;
    }

    /** The consumer's properties. A stock client has hardly any that is not needed to be a member. */
    Properties consumer() {
        Properties made = client();
        made.put("group.id", text("group"));
        made.put("auto.offset.reset", text("auto-offset-reset"));
        made.put("metadata.max.age.ms", text("metadata-refresh-ms"));
        made.put("max.poll.interval.ms", text("max-poll-ms"));
        made.put("max.poll.records", Integer.toString(poll));
        made.put("enable.auto.commit", Boolean.toString(is("commit", "auto")));
        if (is("commit", "auto")) {
            made.put("auto.commit.interval.ms", text("commit-interval-ms"));
        }
        if (is("membership", "static")) {
            made.put("group.instance.id", pod);
        }
        boolean lab = is("client-settings", "lab");
        if (lab) {
            made.put("fetch.max.wait.ms", "100");
            made.put("max.partition.fetch.bytes", Integer.toString(whole("partition-fetch-kib") * 1024));
        }
        if (is("balancer", "consumer")) {
            made.put("group.protocol", "consumer");
            return made;
        }
        made.put("partition.assignment.strategy", ASSIGNORS.get(text("balancer")));
        if (lab) {
            made.put("heartbeat.interval.ms", text("heartbeat-ms"));
            made.put("session.timeout.ms", text("session-timeout-ms"));
        }
        return made;
    }

    /** The properties of a producer of receipts and reports. */
    Properties producer() {
        Properties made = client();
        made.put("linger.ms", "5"); // receipts of one fetch share requests; a flush doesn't linger
        made.put("delivery.timeout.ms", "30000");
        made.put("request.timeout.ms", "20000");
        return made;
    }

    private Properties client() {
        Properties made = new Properties();
        made.put("bootstrap.servers", text("bootstrap-servers"));
        made.put("client.id", pod);
        if (text("kafka-settings").isEmpty()) {
            return made;
        }
        Map<String, String> login = new TreeMap<>();
        for (Matcher found = PAIR.matcher(text("kafka-settings")); found.find(); ) {
            login.put(found.group(1), found.group(2));
        }
        if (!"SASL_PLAINTEXT".equals(login.get("security.protocol")) || !"PLAIN".equals(login.get("sasl.mechanism"))) {
            throw new IllegalArgumentException("--kafka-settings: (not shown); allowed: SASL_PLAINTEXT with PLAIN");
        }
        made.put("security.protocol", "SASL_PLAINTEXT");
        made.put("sasl.mechanism", "PLAIN");
        // JSON escapes a quote and a backslash as JAAS does.
        made.put("sasl.jaas.config", "org.apache.kafka.common.security.plain.PlainLoginModule required username=\""
                + login.get("sasl.username") + "\" password=\"" + login.get("sasl.password") + "\";");
        return made;
    }
}
