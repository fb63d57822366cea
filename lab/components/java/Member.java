package lab;

import java.time.Duration;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import java.util.concurrent.TimeUnit;
import org.apache.kafka.clients.consumer.CloseOptions;
import org.apache.kafka.clients.consumer.ConsumerRebalanceListener;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.consumer.RetriableCommitFailedException;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.errors.RebalanceInProgressException;
import org.apache.kafka.common.errors.WakeupException;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;

/** A member of the group. Everything but wakeup runs on one thread; the listener is called within poll and close. */
final class Member implements ConsumerRebalanceListener {
    private static final Duration REVOKED = Duration.ofSeconds(60); // a revoked partition's commit: the client's own default

    private final Settings settings;
    private final Telemetry tell;
    private final KafkaConsumer<byte[], byte[]> consumer;
    private final boolean manual;
    private final long batchNanos;
    private final Set<Integer> owned = new TreeSet<>();
    private final Map<TopicPartition, OffsetAndMetadata> processed = new HashMap<>(); // what may be committed
    private final List<ConsumerRecord<byte[], byte[]>> fetched = new ArrayList<>();
    private boolean uncommitted;
    private boolean leaving;
    private long lastCommit = System.nanoTime() - TimeUnit.DAYS.toNanos(1); // the first one is due
    private Long began = System.nanoTime(); // of a rebalance that has not ended; null outside of one

    /** Begins to join the group. */
    Member(Settings settings, Telemetry tell) {
        this.settings = settings;
        this.tell = tell;
        manual = settings.is("commit", "manual");
        batchNanos = (long) (settings.number("batch-ms") * 1e6);
        consumer = new KafkaConsumer<>(settings.consumer(), new ByteArrayDeserializer(), new ByteArrayDeserializer());
        consumer.subscribe(settings.topics, this);
    }

    /** Ends a fetch that waits; the only call that another thread may make. */
    void wakeup() {
        consumer.wakeup();
    }

    /** The records that come within a batch's time, fewer than twice as many as a poll takes. */
    List<ConsumerRecord<byte[], byte[]>> fetch() {
        long end = System.nanoTime() + batchNanos;
        fetched.clear();
        try {
            do {
                long left = Math.max(0, end - System.nanoTime());
                consumer.poll(Duration.ofNanos(left)).forEach(fetched::add);
            } while (fetched.size() < settings.poll && System.nanoTime() < end);
        } catch (WakeupException toStop) {
            // What was fetched before is finished.
        }
        return new ArrayList<>(fetched);
    }

    /** Notes that every record of its partition up to this one has its receipt. */
    void processed(ConsumerRecord<byte[], byte[]> last) {
        OffsetAndMetadata next = new OffsetAndMetadata(last.offset() + 1, last.leaderEpoch(), "");
        processed.put(new TopicPartition(last.topic(), last.partition()), next);
        uncommitted = true;
    }

    /** Commits when the commit interval has passed, and does not wait for the answer. */
    void commitIfDue() {
        long interval = TimeUnit.MILLISECONDS.toNanos(settings.whole("commit-interval-ms"));
        if (!manual || !uncommitted || System.nanoTime() - lastCommit < interval) {
            return;
        }
        lastCommit = System.nanoTime();
        uncommitted = false;
        long asked = lastCommit;
        consumer.commitAsync(new HashMap<>(processed), (offsets, error) -> {
            if (error instanceof RebalanceInProgressException || error instanceof RetriableCommitFailedException) {
                uncommitted = true; // as every one of these during a cooperative rebalance
            } else {
                answered(offsets, error, asked);
            }
        });
    }

    /** Commits what is processed of these partitions, and waits at most so long. Returns whether Kafka took it. */
    private boolean commit(Collection<TopicPartition> parts, Duration most) {
        Map<TopicPartition, OffsetAndMetadata> wanted = new HashMap<>(processed);
        wanted.keySet().retainAll(parts);
        if (!manual || wanted.isEmpty()) {
            return true;
        }
        long asked = System.nanoTime();
        for (boolean woken = false; ; woken = true) {
            try {
                consumer.commitSync(wanted, most);
                answered(wanted, null, asked);
                return true;
            } catch (WakeupException toStop) { // SIGTERM woke this call in the place of a poll
                if (woken) {
                    throw toStop;
                }
            } catch (KafkaException refused) {
                answered(wanted, refused, asked);
                return false;
            }
        }
    }

    /** Counts a commit that was asked for then, ns, and reports one that was refused: the next commit carries its offsets. */
    private void answered(Map<TopicPartition, OffsetAndMetadata> offsets, Exception error, long asked) {
        if (error != null) {
            uncommitted = true;
        }
        tell.committed(error == null);
        if (error != null) {
            Set<Integer> refused = numbers(offsets.keySet());
            tell.say("commit_failed", "error", error.toString(), "partitions", refused, "seconds", Telemetry.since(asked));
        }
    }

    /** Commits and leaves. Returns whether Kafka took the commit in time. */
    boolean leave(Duration most) {
        long end = System.nanoTime() + most.toNanos();
        leaving = true;
        boolean safe;
        while (!(safe = commit(new ArrayList<>(processed.keySet()), left(end))) && System.nanoTime() < end) {
            consumer.pause(consumer.assignment());
            try {
                consumer.poll(Duration.ofMillis(50)); // serves the rebalance that refuses the commit
            } catch (WakeupException late) {
                // A signal that came while the last batch was processed.
            }
        }
        if (safe) {
            processed.clear();
            tell.say("committed");
        }
        consumer.close(CloseOptions.timeout(left(end)));
        return safe;
    }

    /** What is left until then, ns, and a second at least. */
    private static Duration left(long end) {
        return Duration.ofNanos(Math.max(1_000_000_000L, end - System.nanoTime()));
    }

    @Override
    public void onPartitionsAssigned(Collection<TopicPartition> parts) {
        owned.addAll(numbers(parts));
        if (leaving) {
            consumer.pause(parts);
        } else { // the simulated load of each partition's state
            try {
                Thread.sleep((long) (parts.size() * settings.number("partition-warmup-ms")));
            } catch (InterruptedException interrupted) {
                Thread.currentThread().interrupt();
            }
        }
        if (!parts.isEmpty() || owned.isEmpty()) { // an incremental rebalance also calls where nothing has changed
            tell.owned("assigned", numbers(parts), owned.size(), began);
        }
        tell.rebalanced(began);
        began = null;
    }

    @Override
    public void onPartitionsRevoked(Collection<TopicPartition> parts) {
        long now = System.nanoTime();
        if (!parts.isEmpty()) {
            commit(parts, REVOKED);
            forget("revoked", parts, now);
        }
    }

    @Override
    public void onPartitionsLost(Collection<TopicPartition> parts) {
        forget("lost", parts, System.nanoTime());
    }

    /** Gives partitions up: their next owner begins at the committed offsets. */
    private void forget(String event, Collection<TopicPartition> parts, long now) {
        began = began == null ? now : began;
        owned.removeAll(numbers(parts));
        processed.keySet().removeAll(parts);
        fetched.removeIf(record -> parts.contains(new TopicPartition(record.topic(), record.partition())));
        tell.owned(event, numbers(parts), owned.size(), now);
    }

    private Set<Integer> numbers(Collection<TopicPartition> parts) {
        Set<Integer> found = new TreeSet<>();
        parts.forEach(part -> found.add(settings.number(part.topic(), part.partition())));
        return found;
    }
}
