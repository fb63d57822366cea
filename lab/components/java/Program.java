package lab;

import java.time.Duration;
import java.util.ArrayList;
import java.util.Collection;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicReference;
import java.util.function.BooleanSupplier;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/** The consumer of group enrich in Java: a batch is processed, its receipts are durable, and then comes the commit. */
public final class Program {
    private static final double SLACK_S = 0.02; // a batch within it counts from the end of the one before: there was work

    private final Settings settings;
    private final KafkaProducer<byte[], byte[]> producer;
    private final Telemetry tell;
    private final CountDownLatch stopping = new CountDownLatch(1);
    private final CountDownLatch abandon = new CountDownLatch(1); // work in flight is given up
    private final AtomicReference<Exception> notDurable = new AtomicReference<>();
    private volatile Member member;
    private volatile boolean ready;
    private volatile long aliveAt = System.nanoTime();
    private volatile double signalled;
    private volatile long signalledAt;
    private double freeAt; // when the slots are free, epoch seconds

    private Program(Settings settings) {
        this.settings = settings;
        producer = new KafkaProducer<>(settings.producer(), new ByteArraySerializer(), new ByteArraySerializer());
        tell = new Telemetry(settings, producer);
    }

    /** Consumes until SIGTERM, then drains and leaves. Ends with 0, with 2 for a flag that is not allowed, else with 1. */
    public static void main(String[] arguments) {
        Program program = null;
        try {
            program = new Program(new Settings(arguments, System.getenv()));
        } catch (IllegalArgumentException refused) {
            System.err.println("consumer-java: " + refused.getMessage());
            System.exit(2);
        }
        int code = 0;
        try {
            program.run();
        } catch (Exception | Error failed) {
            failed.printStackTrace();
            code = 1;
        }
        Runtime.getRuntime().halt(code); // an orderly end by SIGTERM would be 143
    }

    private void run() throws Exception {
        if (settings.is("drain", "on")) { // without a hook it dies where it stands
            Thread main = Thread.currentThread();
            Runtime.getRuntime().addShutdownHook(new Thread(() -> drain(main), "drain"));
        }
        double limit = settings.number("liveness-s") / 2 + settings.high / 1000;
        BooleanSupplier healthy = () -> Telemetry.since(aliveAt) < limit;
        tell.serve(settings.text("pod-ip"), settings.whole("metrics-port"), () -> ready, healthy);
        double created = Telemetry.created();
        tell.say("started", "created", created);
        stand(created + settings.number("start-s")); // the cold start that is declared
        if (settings.is("join", "off")) { // the control for the cost of a starting pod to its neighbours
            ready = true;
            stand(Double.POSITIVE_INFINITY);
        } else {
            consume();
        }
        producer.flush();
    }

    /** Runs at SIGTERM: polling stops, and work in flight is given up only after the drain timeout. */
    private void drain(Thread main) {
        signalled = Telemetry.now();
        signalledAt = System.nanoTime();
        stopping.countDown();
        Member joined = member;
        if (joined != null) {
            joined.wakeup();
        }
        try {
            main.join((long) (settings.number("drain-timeout") * 1000) + 1);
            abandon.countDown();
            main.join(); // it halts the JVM
        } catch (InterruptedException interrupted) {
            Thread.currentThread().interrupt();
        }
    }

    private boolean stops() {
        return stopping.getCount() == 0;
    }

    /** Is alive and does nothing until a time, epoch seconds, or until it is told to stop. */
    private void stand(double until) throws InterruptedException {
        for (double left; (left = until - Telemetry.now()) > 0 && !stops(); aliveAt = System.nanoTime()) {
            stopping.await((long) (Math.min(left, 1) * 1e9), TimeUnit.NANOSECONDS);
        }
    }

    private void consume() throws Exception {
        boolean abandoned = false;
        boolean committed = true;
        if (!stops()) {
            member = new Member(settings, tell);
            ready = true;
            tell.say("subscribed");
        }
        while (!stops() && !abandoned) {
            aliveAt = System.nanoTime();
            List<ConsumerRecord<byte[], byte[]>> records = member.fetch();
            abandoned = !process(records);
            member.commitIfDue();
        }
        ready = false;
        tell.say("draining", "abandoned", abandoned, "signalled", signalled);
        if (member != null) {
            double left = settings.number("drain-timeout") - Telemetry.since(signalledAt);
            committed = member.leave(Duration.ofMillis((long) (Math.max(1, left) * 1000)));
        }
        tell.say("left", "committed", committed);
    }

    /** Processes the records batch by batch. Returns false when the drain timeout gave one up: it has no receipt, no commit. */
    private boolean process(List<ConsumerRecord<byte[], byte[]>> records) throws Exception {
        List<Receipt> written = new ArrayList<>();
        boolean whole = true;
        for (int at = 0; at < records.size() && whole; at += settings.batch) {
            List<ConsumerRecord<byte[], byte[]>> batch = records.subList(at, Math.min(at + settings.batch, records.size()));
            Collection<Receipt> receipts = Receipt.of(settings, batch);
            double start = Telemetry.now();
            tell.set("inflight", batch.size());
            whole = work(Receipt.cost(settings, batch) / 1000 / settings.concurrency);
            if (whole) {
                double end = Telemetry.now();
                for (Receipt one : receipts) {
                    one.start = start;
                    one.end = end;
                    write(one);
                }
                written.addAll(receipts);
                tell.set("inflight", 0);
            }
        }
        if (!written.isEmpty()) {
            producer.flush();
        }
        if (notDurable.get() != null) {
            throw notDurable.get();
        }
        for (Receipt one : written) {
            member.processed(one.last);
            tell.done(one.count, Telemetry.now() - one.start);
        }
        return whole;
    }

    private void write(Receipt receipt) {
        String topic = settings.text("receipts-topic");
        byte[] key = Telemetry.bytes(settings.pod);
        producer.send(new ProducerRecord<>(topic, key, receipt.json(settings.pod)), (place, error) -> {
            if (error != null) {
                notDurable.compareAndSet(null, error);
            }
        });
    }

    /** Takes as long as the processing: the simulated write itself. Returns false when it was abandoned before the end. */
    private boolean work(double seconds) throws InterruptedException {
        double now = Telemetry.now();
        freeAt = (now - freeAt <= SLACK_S ? freeAt : now) + seconds;
        return !abandon.await((long) ((freeAt - now) * 1e9), TimeUnit.NANOSECONDS);
    }
}
