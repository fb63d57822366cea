// Runs members of consumer groups with Sarama as cases ask for them, and writes what each consumed.
//
// It is a test only because the harness builds tests (see ../harness.py); it calls nothing that Sarama does not export.
//
// In: one JSON case a line. Out: one JSON answer a line. A member is alone in its group.
package saramaoracle

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/IBM/sarama"
)

const (
	quiet    = 2 * time.Second  // without a message since the last one, or since the assignment: the member has all there is
	deadline = 60 * time.Second // of a member
	settle   = 100 * time.Millisecond
)

type memberCase struct {
	Bootstrap  string  `json:"bootstrap"`
	Topic      string  `json:"topic"`
	Group      string  `json:"group"`
	AutoCommit bool    `json:"autoCommit"` // Offsets.AutoCommit.Enable
	Commit     bool    `json:"commit"`     // session.Commit() after each message that is marked
	Fails      []int64 `json:"fails"`      // the offsets, in every partition, whose work fails: they are not marked
	Leaves     bool    `json:"leaves"`     // the member leaves at a failure, in place of going on with the next message
}

// A message, by partition and offset.
type place [2]int64

type memberAnswer struct {
	Processed []place `json:"processed"`
	Failed    []place `json:"failed"`
	Error     string  `json:"error"`
}

type member struct {
	asked  memberCase
	leave  context.CancelFunc
	mutex  sync.Mutex
	answer memberAnswer
	last   time.Time // of the assignment or a message; zero before the assignment
}

func (m *member) Setup(sarama.ConsumerGroupSession) error {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	m.last = time.Now()
	return nil
}

func (m *member) Cleanup(sarama.ConsumerGroupSession) error { return nil }

// The loop that Sarama's own example has: work, then MarkMessage.
func (m *member) ConsumeClaim(session sarama.ConsumerGroupSession, claim sarama.ConsumerGroupClaim) error {
	for {
		select {
		case message, open := <-claim.Messages():
			if !open {
				return nil
			}
			if !m.works(message) {
				if m.asked.Leaves {
					m.leave()
					return nil
				}
				continue
			}
			session.MarkMessage(message, "")
			if m.asked.Commit {
				session.Commit()
			}
		case <-session.Context().Done():
			return nil
		}
	}
}

func (m *member) works(message *sarama.ConsumerMessage) bool {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	m.last = time.Now()
	at := place{int64(message.Partition), message.Offset}
	if slices.Contains(m.asked.Fails, message.Offset) {
		m.answer.Failed = append(m.answer.Failed, at)
		return false
	}
	m.answer.Processed = append(m.answer.Processed, at)
	return true
}

// Leaves when it is quiet.
func (m *member) watch(ctx context.Context) {
	ticker := time.NewTicker(settle)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			m.mutex.Lock()
			done := !m.last.IsZero() && time.Since(m.last) > quiet
			m.mutex.Unlock()
			if done {
				m.leave()
				return
			}
		case <-ctx.Done():
			return
		}
	}
}

func run(asked memberCase) memberAnswer {
	config := sarama.NewConfig()
	config.Version = sarama.V3_6_0_0
	config.Consumer.Offsets.Initial = sarama.OffsetOldest
	config.Consumer.Offsets.AutoCommit.Enable = asked.AutoCommit
	group, err := sarama.NewConsumerGroup([]string{asked.Bootstrap}, asked.Group, config)
	if err != nil {
		return memberAnswer{Error: err.Error()}
	}
	ctx, leave := context.WithTimeout(context.Background(), deadline)
	m := &member{asked: asked, leave: leave, answer: memberAnswer{Processed: []place{}, Failed: []place{}}}
	go m.watch(ctx)
	for ctx.Err() == nil && err == nil {
		err = group.Consume(ctx, []string{asked.Topic}, m)
	}
	if ctx.Err() == context.DeadlineExceeded {
		err = ctx.Err()
	}
	leave()
	if closed := group.Close(); err == nil {
		err = closed
	}
	if err != nil {
		m.answer.Error = err.Error()
	}
	return m.answer
}

func TestOracle(t *testing.T) {
	lines := bufio.NewScanner(os.Stdin)
	out := json.NewEncoder(os.Stdout)
	for lines.Scan() {
		var asked memberCase
		if err := json.Unmarshal(lines.Bytes(), &asked); err != nil {
			panic(fmt.Sprintf("oracle: %v in %s", err, lines.Text()))
		}
		if err := out.Encode(run(asked)); err != nil {
			panic(err)
		}
	}
}
