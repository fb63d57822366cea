package main

import (
	"context"
	"errors"
	"log"
	"slices"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// balancers are the lab's names for them. KIP-848 asks the broker for its uniform assignor, as a sticky balancer does.
var balancers = map[string]kgo.GroupBalancer{
	"cooperative-sticky": kgo.CooperativeStickyBalancer(),
	"range":              kgo.RangeBalancer(),
	"roundrobin":         kgo.RoundRobinBalancer(),
	"consumer":           kgo.CooperativeStickyBalancer(),
}

const (
	// A partition gained by a member that is caught up waits until the fetch that is parked at the broker comes back.
	fetchWait = 100 * time.Millisecond
	// How long the group waits for a member: what the other clients call max.poll.interval.ms.
	rebalanceTimeout = 300 * time.Second
	// The client's own least intervals.
	leastAutoCommit, leastMetadataAge = 100 * time.Millisecond, 5 * time.Second
)

type offsets map[string]map[int32]kgo.EpochOffset

// member is a member of the group. Its callbacks wait for the records that were fetched last: see fetch.
type member struct {
	settings settings
	client   *kgo.Client
	tell     *telemetry

	mu          sync.Mutex // the answers to commits come from another goroutine
	owned       map[int]bool
	processed   offsets // what may be committed
	uncommitted bool
	leaving     bool
	lastCommit  time.Time
	began       time.Time // of a rebalance that has not ended; zero outside of one
}

// join begins to join the group.
func join(s settings, tell *telemetry) (*member, error) {
	m := &member{settings: s, tell: tell, owned: map[int]bool{}, processed: offsets{}, began: time.Now()}
	start := kgo.NewOffset().AtStart()
	if s.reset == "latest" {
		start = kgo.NewOffset().AtEnd()
	}
	options := append([]kgo.Opt{
		kgo.SeedBrokers(s.bootstrap...),
		kgo.ClientID(s.pod),
		kgo.ConsumerGroup(s.group),
		kgo.ConsumeTopics(s.topics...),
		kgo.ConsumeStartOffset(start),
		kgo.ConsumeResetOffset(start),
		kgo.Balancers(balancers[s.balancer]),
		kgo.MetadataMaxAge(s.metadata),
		kgo.MetadataMinAge(min(s.metadata, leastMetadataAge)),
		kgo.BlockRebalanceOnPoll(),
		kgo.OnPartitionsAssigned(m.assigned),
		kgo.OnPartitionsRevoked(func(ctx context.Context, _ *kgo.Client, parts map[string][]int32) {
			m.gone(ctx, "revoked", parts)
		}),
		kgo.OnPartitionsLost(func(ctx context.Context, _ *kgo.Client, parts map[string][]int32) {
			m.gone(ctx, "lost", parts)
		}),
	}, s.login...)
	if s.balancer == "consumer" {
		options = append(options, kgo.ServerSideBalancer())
	}
	if s.static {
		options = append(options, kgo.InstanceID(s.pod))
	}
	if s.auto {
		options = append(options, kgo.AutoCommitInterval(max(s.commitInterval, leastAutoCommit)))
	} else {
		options = append(options, kgo.DisableAutoCommit())
	}
	if !s.stock {
		options = append(options,
			kgo.FetchMaxWait(fetchWait),
			kgo.FetchMaxPartitionBytes(s.fetch),
			kgo.HeartbeatInterval(s.heartbeat),
			kgo.SessionTimeout(s.session),
			kgo.RebalanceTimeout(rebalanceTimeout),
		)
	}
	var err error
	m.client, err = kgo.NewClient(options...)
	return m, err
}

// fetch releases the records of the last fetch to a rebalance that waits for them, and returns as many as come until ctx is
// done, at most so many.
func (m *member) fetch(ctx context.Context, most int) ([]*kgo.Record, error) {
	m.client.AllowRebalance()
	var records []*kgo.Record
	for len(records) < most && ctx.Err() == nil {
		fetches := m.client.PollRecords(ctx, most-len(records))
		for _, failed := range fetches.Errors() {
			var session *kgo.ErrGroupSession
			switch {
			case errors.Is(failed.Err, context.DeadlineExceeded), errors.Is(failed.Err, context.Canceled):
			case errors.As(failed.Err, &session): // the client joins again by itself
				log.Print(failed.Err)
			default:
				return nil, failed.Err
			}
		}
		records = append(records, fetches.Records()...)
	}
	return records, nil
}

// done notes that every record of its partition up to this one has its receipt.
func (m *member) done(last *kgo.Record) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.processed[last.Topic] == nil {
		m.processed[last.Topic] = map[int32]kgo.EpochOffset{}
	}
	m.processed[last.Topic][last.Partition] = kgo.EpochOffset{Epoch: last.LeaderEpoch, Offset: last.Offset + 1}
	m.uncommitted = true
}

// commitIfDue commits when the commit interval has passed, and does not wait for the answer.
func (m *member) commitIfDue(ctx context.Context) {
	m.mu.Lock()
	due := !m.settings.auto && m.uncommitted && time.Since(m.lastCommit) >= m.settings.commitInterval
	if due {
		m.lastCommit, m.uncommitted = time.Now(), false
	}
	asked, wanted := time.Now(), m.copied(nil)
	m.mu.Unlock()
	if due {
		m.client.CommitOffsets(ctx, wanted, func(
			_ *kgo.Client, _ *kmsg.OffsetCommitRequest, answer *kmsg.OffsetCommitResponse, err error,
		) {
			m.answered(answer, err, asked)
		})
	}
}

// commit commits what is processed of these partitions, or of all, and waits. It returns whether Kafka took it.
func (m *member) commit(ctx context.Context, parts map[string][]int32) bool {
	if m.settings.auto { // the client's own commits are of what was polled, too
		return m.client.CommitUncommittedOffsets(ctx) == nil
	}
	m.mu.Lock()
	asked, wanted := time.Now(), m.copied(parts)
	m.mu.Unlock()
	good := true
	if len(wanted) > 0 {
		m.client.CommitOffsetsSync(ctx, wanted, func(
			_ *kgo.Client, _ *kmsg.OffsetCommitRequest, answer *kmsg.OffsetCommitResponse, err error,
		) {
			good = m.answered(answer, err, asked)
		})
	}
	return good
}

// copied returns what is processed of these partitions, or of all.
func (m *member) copied(parts map[string][]int32) offsets {
	made := offsets{}
	for topic, partitions := range m.processed {
		for partition, offset := range partitions {
			if parts == nil || slices.Contains(parts[topic], partition) {
				if made[topic] == nil {
					made[topic] = map[int32]kgo.EpochOffset{}
				}
				made[topic][partition] = offset
			}
		}
	}
	return made
}

// answered counts a commit that was asked for then, and reports one that was refused. Its offsets are not lost: the next commit
// carries them.
func (m *member) answered(answer *kmsg.OffsetCommitResponse, err error, asked time.Time) bool {
	if errors.Is(err, context.Canceled) { // a later commit took its place
		return false
	}
	refused := []int{}
	if err == nil {
		for _, topic := range answer.Topics {
			for _, part := range topic.Partitions {
				if failed := kerr.ErrorForCode(part.ErrorCode); failed != nil {
					err, refused = failed, append(refused, m.settings.number(topic.Topic, part.Partition))
				}
			}
		}
	}
	m.tell.commit(err == nil)
	if err != nil {
		m.mu.Lock()
		m.uncommitted = true
		m.mu.Unlock()
		took := time.Since(asked).Seconds()
		m.tell.say("commit_failed", fields{"error": err.Error(), "partitions": refused, "seconds": took})
	}
	return err == nil
}

func (m *member) assigned(_ context.Context, _ *kgo.Client, parts map[string][]int32) {
	m.mu.Lock()
	numbers := m.numbers(parts)
	for _, number := range numbers {
		m.owned[number] = true
	}
	owned, began, leaving := len(m.owned), m.began, m.leaving
	m.began = time.Time{}
	m.mu.Unlock()
	if !leaving { // the simulated load of each partition's state
		time.Sleep(time.Duration(len(numbers)) * m.settings.warmup)
	}
	if len(numbers) > 0 || owned == 0 { // the client also calls where nothing has changed
		m.tell.owned("assigned", numbers, owned, began)
	}
	m.tell.rebalanced(began)
}

// gone gives partitions up, which are "revoked" or "lost": their next owner begins at the committed offsets.
func (m *member) gone(ctx context.Context, event string, parts map[string][]int32) {
	began := time.Now()
	if len(parts) == 0 { // the end of a session
		return
	}
	if event == "revoked" {
		m.commit(ctx, parts)
	}
	m.mu.Lock()
	numbers := m.numbers(parts)
	for _, number := range numbers {
		delete(m.owned, number)
	}
	for topic, partitions := range parts {
		for _, partition := range partitions {
			delete(m.processed[topic], partition)
		}
	}
	if m.began.IsZero() {
		m.began = began
	}
	owned := len(m.owned)
	m.mu.Unlock()
	m.tell.owned(event, numbers, owned, began)
}

// leave commits what is processed and leaves the group. It returns whether Kafka took the commit until ctx was done.
func (m *member) leave(ctx context.Context) bool {
	m.mu.Lock()
	m.leaving = true
	m.mu.Unlock()
	safe := m.commit(ctx, nil)
	for !safe && ctx.Err() == nil { // a rebalance under way refuses a commit
		m.client.AllowRebalance()
		select {
		case <-ctx.Done():
		case <-time.After(50 * time.Millisecond):
		}
		safe = m.commit(ctx, nil)
	}
	if safe {
		m.mu.Lock()
		clear(m.processed)
		m.mu.Unlock()
		m.tell.say("committed", nil)
	}
	m.client.CloseAllowingRebalance()
	return safe
}

func (m *member) numbers(parts map[string][]int32) []int {
	found := []int{}
	for topic, partitions := range parts {
		for _, partition := range partitions {
			found = append(found, m.settings.number(topic, partition))
		}
	}
	slices.Sort(found)
	return found
}
