package scalers

import (
	"context"
	"fmt"
	"net"

	"github.com/go-logr/logr"
	"github.com/segmentio/kafka-go"
	"github.com/segmentio/kafka-go/protocol/listoffsets"
	"github.com/segmentio/kafka-go/protocol/metadata"
	"github.com/segmentio/kafka-go/protocol/offsetfetch"

	"github.com/kedacore/keda/v2/pkg/scalers/scalersconfig"
)

func apacheAnswer(config *scalersconfig.ScalerConfig, calls []kafkaCall) (out answer) {
	metricType, err := GetMetricTargetType(config)
	if err != nil {
		return answer{Refused: err.Error()}
	}
	metadata, err := parseApacheKafkaMetadata(config)
	if err != nil {
		return answer{Refused: err.Error()}
	}
	// What the scaler's client is made of is checked only when it is made.
	if _, err := getApacheKafkaClient(context.Background(), metadata, logr.Discard()); err != nil {
		return answer{Refused: err.Error()}
	}
	brokers := &fakeBrokers{}
	scaler := &apacheKafkaScaler{
		metricType:      metricType,
		metadata:        metadata,
		client:          &kafka.Client{Addr: kafka.TCP("fake:9092"), Transport: brokers},
		logger:          logr.Discard(),
		previousOffsets: make(map[string]map[int]int64),
	}
	out.Metrics = scaler.GetMetricSpecForScaling(context.Background())
	for index := range calls {
		brokers.call = &calls[index]
		out.Calls = append(out.Calls, called(scaler.GetMetricsAndActivity(context.Background(), "m")))
	}
	return out
}

// fakeBrokers answers what the real ones would, for every partition that is asked about.
type fakeBrokers struct{ call *kafkaCall }

func (b *fakeBrokers) RoundTrip(_ context.Context, _ net.Addr, request kafka.Request) (kafka.Response, error) {
	switch asked := request.(type) {
	case *metadata.Request:
		response := &metadata.Response{}
		for name, partitions := range b.call.Topics {
			topic := metadata.ResponseTopic{Name: name}
			for _, partition := range partitions {
				topic.Partitions = append(topic.Partitions, metadata.ResponsePartition{PartitionIndex: partition.ID})
			}
			response.Topics = append(response.Topics, topic)
		}
		return response, nil
	case *offsetfetch.Request:
		response := &offsetfetch.Response{}
		for _, one := range asked.Topics {
			topic := offsetfetch.ResponseTopic{Name: one.Name}
			for _, id := range one.PartitionIndexes {
				offset := *b.partition(one.Name, id).Committed
				topic.Partitions = append(topic.Partitions, offsetfetch.ResponsePartition{PartitionIndex: id, CommittedOffset: offset})
			}
			response.Topics = append(response.Topics, topic)
		}
		return response, nil
	case *listoffsets.Request:
		response := &listoffsets.Response{}
		for _, one := range asked.Topics {
			topic := listoffsets.ResponseTopic{Topic: one.Topic}
			for _, wanted := range one.Partitions {
				offset := b.partition(one.Topic, wanted.Partition).End
				if wanted.Timestamp == kafka.FirstOffset {
					offset = b.partition(one.Topic, wanted.Partition).Start
				}
				topic.Partitions = append(topic.Partitions, listoffsets.ResponsePartition{
					Partition: wanted.Partition, Timestamp: wanted.Timestamp, Offset: *offset,
				})
			}
			response.Topics = append(response.Topics, topic)
		}
		return response, nil
	}
	return nil, fmt.Errorf("the fake brokers know no %T", request)
}

func (b *fakeBrokers) partition(topic string, id int32) kafkaPartition {
	for _, partition := range b.call.Topics[topic] {
		if partition.ID == id {
			return partition
		}
	}
	panic(fmt.Sprintf("no partition %d of topic %s", id, topic))
}
