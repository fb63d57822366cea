package scalers

import (
	"context"
	"encoding/binary"
	"io"
	"net"
	"sync/atomic"
	"testing"

	"github.com/IBM/sarama"
	"github.com/go-logr/logr"

	"github.com/kedacore/keda/v2/pkg/scalers/scalersconfig"
)

// kafkaCall is what the brokers answer to one call of the scaler, by topic.
type kafkaCall struct {
	Topics map[string][]kafkaPartition `json:"topics"`
}

// kafkaPartition: no End or Start leaves the partition out of the ListOffsets answer, no Committed out of the group's.
type kafkaPartition struct {
	ID        int32  `json:"id"`
	Start     *int64 `json:"start"`
	End       *int64 `json:"end"`
	Committed *int64 `json:"committed"`
}

func kafkaAnswer(config *scalersconfig.ScalerConfig, calls []kafkaCall, broker *fakeBroker) (out answer) {
	metricType, err := GetMetricTargetType(config)
	if err != nil {
		return answer{Refused: err.Error()}
	}
	metadata, err := parseKafkaMetadata(config, logr.Discard())
	if err != nil {
		return answer{Refused: err.Error()}
	}
	scaler := &kafkaScaler{
		metricType:      metricType,
		metadata:        metadata,
		client:          fakeClient{broker: broker},
		admin:           fakeAdmin{broker: broker},
		logger:          logr.Discard(),
		previousOffsets: make(map[string]map[int32]int64),
	}
	out.Metrics = scaler.GetMetricSpecForScaling(context.Background())
	for index := range calls {
		broker.call.Store(&calls[index])
		out.Calls = append(out.Calls, called(scaler.GetMetricsAndActivity(context.Background(), "m")))
	}
	return out
}

// fakeAdmin answers what the real admin client would: topics, and the group's offsets.
type fakeAdmin struct {
	sarama.ClusterAdmin
	broker *fakeBroker
}

func (a fakeAdmin) DescribeTopics(names []string) (topics []*sarama.TopicMetadata, err error) {
	for _, name := range names {
		topic := &sarama.TopicMetadata{Name: name}
		for _, partition := range a.broker.call.Load().Topics[name] {
			topic.Partitions = append(topic.Partitions, &sarama.PartitionMetadata{ID: partition.ID})
		}
		topics = append(topics, topic)
	}
	return topics, nil
}

func (a fakeAdmin) ListConsumerGroupOffsets(string, map[string][]int32) (*sarama.OffsetFetchResponse, error) {
	response := &sarama.OffsetFetchResponse{Blocks: make(map[string]map[int32]*sarama.OffsetFetchResponseBlock)}
	for name, partitions := range a.broker.call.Load().Topics {
		response.Blocks[name] = make(map[int32]*sarama.OffsetFetchResponseBlock)
		for _, partition := range partitions {
			if partition.Committed != nil {
				response.AddBlock(name, partition.ID, &sarama.OffsetFetchResponseBlock{Offset: *partition.Committed})
			}
		}
	}
	return response, nil
}

// fakeClient knows one broker, which leads every partition.
type fakeClient struct {
	sarama.Client
	broker *fakeBroker
}

func (c fakeClient) Config() *sarama.Config { return c.broker.config }

func (c fakeClient) Leader(string, int32) (*sarama.Broker, error) { return c.broker.connection, nil }

// fakeBroker speaks ListOffsets version 1 over a pipe, to which a real sarama.Broker is connected.
type fakeBroker struct {
	config     *sarama.Config
	connection *sarama.Broker
	call       atomic.Pointer[kafkaCall]
}

type dialer func() net.Conn

func (d dialer) Dial(string, string) (net.Conn, error) { return d(), nil }

func newFakeBroker(t *testing.T) *fakeBroker {
	fake := &fakeBroker{config: sarama.NewConfig(), connection: sarama.NewBroker("fake:9092")}
	fake.config.Version = sarama.V1_0_0_0 // KEDA's default
	fake.config.ApiVersionsRequest = false
	fake.config.Net.Proxy.Enable = true
	fake.config.Net.Proxy.Dialer = dialer(func() net.Conn {
		near, far := net.Pipe()
		go fake.serve(far)
		return near
	})
	if err := fake.connection.Open(fake.config); err != nil {
		t.Fatal(err)
	}
	if connected, err := fake.connection.Connected(); !connected || err != nil {
		t.Fatal("the fake broker can't be reached", err)
	}
	t.Cleanup(func() { _ = fake.connection.Close() })
	return fake
}

func (b *fakeBroker) serve(connection net.Conn) {
	var size [4]byte
	for {
		if _, err := io.ReadFull(connection, size[:]); err != nil {
			return
		}
		request := reader(make([]byte, binary.BigEndian.Uint32(size[:])))
		if _, err := io.ReadFull(connection, request); err != nil {
			return
		}
		if _, err := connection.Write(b.listOffsets(request)); err != nil {
			return
		}
	}
}

func (b *fakeBroker) listOffsets(request reader) []byte {
	if key, version := request.int16(), request.int16(); key != 2 || version != 1 {
		panic("the fake broker speaks ListOffsets version 1 alone")
	}
	answer := binary.BigEndian.AppendUint32(make([]byte, 4), request.uint32()) // the correlation id
	request.string()                                                           // client id
	request.uint32()                                                           // replica id
	topics := request.uint32()
	answer = binary.BigEndian.AppendUint32(answer, topics)
	for range topics {
		name := request.string()
		answer = append(binary.BigEndian.AppendUint16(answer, uint16(len(name))), name...)
		counted, count := len(answer), uint32(0)
		answer = append(answer, 0, 0, 0, 0)
		for range request.uint32() {
			id, position := int32(request.uint32()), int64(request.uint64())
			if offset := b.offset(name, id, position); offset != nil {
				answer = binary.BigEndian.AppendUint32(answer, uint32(id))
				answer = binary.BigEndian.AppendUint16(answer, 0) // no error
				answer = binary.BigEndian.AppendUint64(answer, 0) // timestamp
				answer = binary.BigEndian.AppendUint64(answer, uint64(*offset))
				count++
			}
		}
		binary.BigEndian.PutUint32(answer[counted:], count)
	}
	binary.BigEndian.PutUint32(answer, uint32(len(answer)-4))
	return answer
}

func (b *fakeBroker) offset(topic string, id int32, position int64) *int64 {
	for _, partition := range b.call.Load().Topics[topic] {
		if partition.ID == id {
			if position == sarama.OffsetOldest {
				return partition.Start
			}
			return partition.End
		}
	}
	return nil
}

// reader takes the fields of a request from its front.
type reader []byte

func (r *reader) take(count int) []byte {
	taken := (*r)[:count]
	*r = (*r)[count:]
	return taken
}

func (r *reader) int16() int16   { return int16(binary.BigEndian.Uint16(r.take(2))) }
func (r *reader) uint32() uint32 { return binary.BigEndian.Uint32(r.take(4)) }
func (r *reader) uint64() uint64 { return binary.BigEndian.Uint64(r.take(8)) }
func (r *reader) string() string { return string(r.take(int(r.int16()))) }
