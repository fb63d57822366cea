package main

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"hash/crc32"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// slack is how soon a batch must follow another one to be counted from its end: the pod had work all the while.
const slack = 20 * time.Millisecond

// receipt is the downstream store's record of a batch, one for each partition in it. Times are epoch seconds.
type receipt struct {
	Pod       string  `json:"pod"`
	Partition int     `json:"partition"`
	First     int64   `json:"first"`
	Last      int64   `json:"last"`
	Count     int     `json:"count"`
	Checksum  uint64  `json:"checksum"` // the sum of each message's CRC-32
	Start     float64 `json:"start"`
	End       float64 `json:"end"`

	record *kgo.Record // the last one
}

// summarize returns the receipts of a batch, and how long its messages take together when each waits for the one before.
func summarize(s settings, records []*kgo.Record) ([]*receipt, time.Duration) {
	var made []*receipt
	byPartition := map[int]*receipt{}
	milliseconds := 0.0
	for _, record := range records {
		number := s.number(record.Topic, record.Partition)
		one := byPartition[number]
		if one == nil {
			one = &receipt{Pod: s.pod, Partition: number, First: record.Offset}
			byPartition[number] = one
			made = append(made, one)
		}
		one.Last, one.record = record.Offset, record
		one.Count++
		one.Checksum += uint64(crc32.ChecksumIEEE(record.Value))
		seq := binary.BigEndian.Uint64(record.Value[8:16])
		// The same in every run, for every client: Knuth's multiplicative hash spreads the seqs.
		milliseconds += s.low + (s.high-s.low)*float64(uint32(seq*2654435761))/(1<<32)
	}
	return made, time.Duration(milliseconds * float64(time.Millisecond))
}

// slots are the places at which so many messages are processed at the same time.
type slots struct {
	concurrency float64
	freeAt      time.Time
}

// work takes as long as the processing: the simulated write itself. It returns false when it was abandoned before the end.
func (w *slots) work(processing time.Duration, abandon <-chan struct{}) bool {
	begin := time.Now()
	if begin.Sub(w.freeAt) <= slack {
		begin = w.freeAt
	}
	w.freeAt = begin.Add(time.Duration(float64(processing) / w.concurrency))
	select {
	case <-abandon:
		return false
	case <-time.After(time.Until(w.freeAt)):
		return true
	}
}

// store writes receipts. They are durable once settle returns nil.
type store struct {
	producer *kgo.Client
	topic    string
	failed   error // of a write; read after a flush
}

func (s *store) write(receipts []*receipt) {
	for _, one := range receipts {
		value, err := json.Marshal(one)
		if err != nil {
			panic(err) // a program's own fault
		}
		record := &kgo.Record{Topic: s.topic, Key: []byte(one.Pod), Value: value}
		s.producer.Produce(context.Background(), record, func(_ *kgo.Record, err error) {
			if err != nil {
				s.failed = err // the client calls one promise after the other
			}
		})
	}
}

// settle waits until everything that was written is durable. It fails where a write was refused or not acknowledged in time.
func (s *store) settle() error {
	if err := s.producer.Flush(context.Background()); err != nil {
		return err
	}
	return s.failed
}
