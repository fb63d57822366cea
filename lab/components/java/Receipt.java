package lab;

import java.nio.ByteBuffer;
import java.util.Collection;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.zip.CRC32;
import org.apache.kafka.clients.consumer.ConsumerRecord;

/** The downstream store's record of a batch, one for each partition in it. Times are epoch seconds. */
final class Receipt {
    final ConsumerRecord<byte[], byte[]> first;
    final int partition; // the trial's number
    ConsumerRecord<byte[], byte[]> last;
    int count;
    long checksum; // the sum of each message's CRC-32
    double start;
    double end;

    private Receipt(ConsumerRecord<byte[], byte[]> first, int partition) {
        this.first = first;
        this.partition = partition;
    }

    /** The receipts of a batch, each partition's records in order. */
    static Collection<Receipt> of(Settings settings, List<ConsumerRecord<byte[], byte[]>> records) {
        Map<Integer, Receipt> made = new LinkedHashMap<>();
        for (ConsumerRecord<byte[], byte[]> record : records) {
            int number = settings.number(record.topic(), record.partition());
            Receipt one = made.computeIfAbsent(number, partition -> new Receipt(record, partition));
            CRC32 crc = new CRC32();
            crc.update(record.value());
            one.last = record;
            one.count++;
            one.checksum += crc.getValue();
        }
        return made.values();
    }

    /** How long the records take together when each waits for the one before, ms: the same in every run, for every client. */
    static double cost(Settings settings, List<ConsumerRecord<byte[], byte[]>> records) {
        double total = 0;
        for (ConsumerRecord<byte[], byte[]> record : records) {
            long seq = ByteBuffer.wrap(record.value()).getLong(8);
            long spread = seq * 2_654_435_761L & 0xFFFF_FFFFL; // Knuth's multiplicative hash
            total += settings.low + (settings.high - settings.low) * spread / 0x1p32;
        }
        return total;
    }

    byte[] json(String pod) {
        Map<String, Object> row = new LinkedHashMap<>();
        row.put("pod", pod);
        row.put("partition", partition);
        row.put("first", first.offset());
        row.put("last", last.offset());
        row.put("count", count);
        row.put("checksum", checksum);
        row.put("start", start);
        row.put("end", end);
        return Telemetry.bytes(Telemetry.json(row));
    }
}
