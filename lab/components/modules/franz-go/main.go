// The consumer of group enrich on franz-go: it processes a batch, makes its receipts durable, and then commits. On SIGTERM it
// drains and leaves the group.
package main

import (
	"context"
	"fmt"
	"log"
	"os"
	"os/signal"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

const (
	linger          = 5 * time.Millisecond // receipts of one fetch share requests; a flush doesn't linger
	deliveryTimeout = 30 * time.Second
)

func main() {
	chosen, err := parse(os.Args[1:])
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	if err := run(chosen); err != nil {
		log.Fatal(err)
	}
}

// run consumes until SIGTERM, and then drains and leaves.
func run(s settings) error {
	producer, err := kgo.NewClient(append([]kgo.Opt{
		kgo.SeedBrokers(s.bootstrap...),
		kgo.ClientID(s.pod),
		kgo.ProducerLinger(linger),
		kgo.RecordDeliveryTimeout(deliveryTimeout),
		kgo.ProducerBatchCompression(kgo.NoCompression()), // a Java reader needs a jar for the client's own choice
	}, s.login...)...)
	if err != nil {
		return err
	}
	defer producer.Close()
	p := &program{
		settings: s,
		tell:     newTelemetry(s, producer),
		slots:    &slots{concurrency: s.concurrency},
		store:    &store{producer: producer, topic: s.receiptsTopic},
		abandon:  make(chan struct{}),
	}
	stopping, stop := context.WithCancel(context.Background())
	defer stop()
	if s.drain { // without a handler it dies where it stands
		signals := make(chan os.Signal, 1)
		signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT)
		go func() {
			<-signals
			p.signalled.Store(&moment{time.Now(), now()})
			stop()
			time.AfterFunc(s.drainTimeout, func() { close(p.abandon) })
		}()
	}
	p.alive()
	if err := p.tell.serve(s.podIP, s.metricsPort, p.ready.Load, p.healthy); err != nil {
		return err
	}
	if err := p.consume(stopping); err != nil {
		return err
	}
	return producer.Flush(context.Background())
}

// moment is when a signal came.
type moment struct {
	at    time.Time
	epoch float64
}

// program is the consumer's one loop, and the state that its probes and signals share.
type program struct {
	settings  settings
	tell      *telemetry
	group     *member
	slots     *slots
	store     *store
	ready     atomic.Bool
	aliveAt   atomic.Int64
	signalled atomic.Pointer[moment]
	abandon   chan struct{} // closed when work in flight is to be given up
}

func (p *program) alive() { p.aliveAt.Store(time.Now().UnixNano()) }

func (p *program) healthy() bool {
	limit := p.settings.live/2 + time.Duration(p.settings.high*float64(time.Millisecond))
	return time.Since(time.Unix(0, p.aliveAt.Load())) < limit
}

// consume joins, works until stopping is done, and leaves.
func (p *program) consume(stopping context.Context) (err error) {
	began := created()
	p.tell.say("started", fields{"created": began})
	p.stand(stopping, began+p.settings.start.Seconds()) // the cold start that is declared
	if !p.settings.joins {                              // the control for the cost of a starting pod to its neighbours
		p.ready.Store(true)
		p.stand(stopping, 0)
		return nil
	}
	committed, abandoned := true, false
	if stopping.Err() == nil {
		if p.group, err = join(p.settings, p.tell); err != nil {
			return err
		}
		p.ready.Store(true)
		p.tell.say("subscribed", nil)
	}
	for stopping.Err() == nil && !abandoned {
		p.alive()
		if abandoned, err = p.turn(stopping); err != nil {
			return err
		}
	}
	p.ready.Store(false)
	signalled := p.signalled.Load()
	p.tell.say("draining", fields{"abandoned": abandoned, "signalled": signalled.epoch})
	if p.group != nil {
		left := max(time.Second, time.Until(signalled.at.Add(p.settings.drainTimeout)))
		ctx, cancel := context.WithTimeout(context.Background(), left)
		defer cancel()
		committed = p.group.leave(ctx)
	}
	p.tell.say("left", fields{"committed": committed})
	return nil
}

// stand is alive and does nothing until a time, epoch seconds, or until stopping is done; 0 is never.
func (p *program) stand(stopping context.Context, until float64) {
	for stopping.Err() == nil && (until == 0 || now() < until) {
		wait := time.Second
		if until > 0 {
			wait = min(wait, time.Duration((until-now())*float64(time.Second)))
		}
		select {
		case <-stopping.Done():
		case <-time.After(wait):
		}
		p.alive()
	}
}

// turn fetches, processes and commits once. It returns true when the drain timeout gave up what was in flight, which has then
// neither receipt nor commit.
func (p *program) turn(stopping context.Context) (abandoned bool, err error) {
	wait, cancel := context.WithTimeout(stopping, p.settings.batchTime)
	defer cancel()
	records, err := p.group.fetch(wait, p.settings.poll)
	if err != nil {
		return false, err
	}
	var written []*receipt
	for at := 0; at < len(records) && !abandoned; at += p.settings.batch {
		receipts, done := p.process(records[at:min(at+p.settings.batch, len(records))])
		written, abandoned = append(written, receipts...), !done
	}
	if len(written) > 0 {
		if err := p.store.settle(); err != nil {
			return abandoned, err
		}
	}
	for _, one := range written {
		p.group.done(one.record)
		p.tell.done(one.Count, now()-one.Start)
	}
	p.group.commitIfDue(context.Background())
	return abandoned, nil
}

// process takes as long as the batch's processing and writes its receipts. It returns false when it was abandoned.
func (p *program) process(records []*kgo.Record) ([]*receipt, bool) {
	receipts, processing := summarize(p.settings, records)
	start := now()
	p.tell.inflight.Set(float64(len(records)))
	if !p.slots.work(processing, p.abandon) {
		return nil, false
	}
	end := now()
	for _, one := range receipts {
		one.Start, one.End = start, end
	}
	p.store.write(receipts)
	p.tell.inflight.Set(0)
	return receipts, true
}
