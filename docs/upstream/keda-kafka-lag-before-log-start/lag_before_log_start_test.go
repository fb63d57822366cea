package scalers

// Put this file into pkg/scalers of KEDA's repository, then: go test ./pkg/scalers -run TestKafkaLagOfACommitBeforeTheLogsStart
// It needs no broker. It fails with KEDA 2.21.0.

import (
	"testing"

	"github.com/IBM/sarama"
	"github.com/go-logr/logr"
)

// Of 20 records retention has deleted the first 15. Whatever the group has committed, it can get no more than the five that exist.
func TestKafkaLagOfACommitBeforeTheLogsStart(t *testing.T) {
	const topic, exist = "orders", int64(5)
	ends := map[string]map[int32]partitionOffsets{
		topic: {0: {earliestOffset: 15, earliestOffsetFound: true, latestOffset: 20}},
	}
	for name, committed := range map[string]int64{"no commit": invalidOffset, "a commit before the log's start": 0, "a commit at it": 15} {
		t.Run(name, func(t *testing.T) {
			scaler := kafkaScaler{
				metadata: kafkaMetadata{ConsumerGroup: "group", OffsetResetPolicy: earliest},
				logger:   logr.Discard(),
			}
			offsets := &sarama.OffsetFetchResponse{
				Blocks: map[string]map[int32]*sarama.OffsetFetchResponseBlock{topic: {0: {Offset: committed}}},
			}
			lag, _, err := scaler.getLagForPartition(topic, 0, offsets, ends)
			if err != nil {
				t.Fatal(err)
			}
			if lag != exist {
				t.Errorf("lag %d, and %d records exist", lag, exist)
			}
		})
	}
}
