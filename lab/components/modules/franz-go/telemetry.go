package main

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/twmb/franz-go/pkg/kgo"
)

type fields map[string]any

var anchor = time.Now() // what comes after is monotonic time since then, so a step of the wall clock moves no duration

// now returns epoch seconds.
func now() float64 { return float64(anchor.UnixNano())/1e9 + time.Since(anchor).Seconds() }

// created returns when the kernel started this process, epoch seconds with a resolution of 10 ms.
func created() float64 {
	stat, statErr := os.ReadFile("/proc/self/stat")
	up, upErr := os.ReadFile("/proc/uptime")
	if statErr != nil || upErr != nil {
		return now()
	}
	behindName := strings.Fields(string(stat[strings.LastIndex(string(stat), ")")+1:]))
	ticks, _ := strconv.ParseFloat(behindName[19], 64)
	uptime, _ := strconv.ParseFloat(strings.Fields(string(up))[0], 64)
	return now() - (uptime - ticks/100)
}

// telemetry tells what happens: metrics by HTTP, and reports in JSON to the recorder's topic.
type telemetry struct {
	producer *kgo.Client
	topic    string
	pod      string

	processed, rebalances         prometheus.Counter
	inflight, assigned            prometheus.Gauge
	commits                       *prometheus.CounterVec
	rebalanceDuration, batchTimes prometheus.Histogram

	mu     sync.Mutex
	recent []batch
}

// batch is a number of messages whose receipt was durable at a time.
type batch struct {
	at    time.Time
	count int
}

func newTelemetry(s settings, producer *kgo.Client) *telemetry {
	t := &telemetry{producer: producer, topic: s.reportsTopic, pod: s.pod}
	counter := func(name, help string) prometheus.Counter {
		return promauto.NewCounter(prometheus.CounterOpts{Name: name, Help: help})
	}
	gauge := func(name, help string) prometheus.Gauge {
		return promauto.NewGauge(prometheus.GaugeOpts{Name: name, Help: help})
	}
	t.processed = counter("messages_processed_total", "Messages whose receipt is durable")
	t.rebalances = counter("rebalances_total", "Rebalances this member took part in")
	t.inflight = gauge("inflight", "Messages taken and not yet processed")
	t.assigned = gauge("assigned_partitions", "Partitions this member owns")
	t.commits = promauto.NewCounterVec(
		prometheus.CounterOpts{Name: "commits_total", Help: "Offset commits"}, []string{"outcome"},
	)
	t.rebalanceDuration = promauto.NewHistogram(prometheus.HistogramOpts{
		Name:    "rebalance_duration_seconds",
		Help:    "From joining, or from what it took first, to its assignment; not counted where neither was seen",
		Buckets: []float64{0.005, 0.01, 0.05, 0.1, 0.25, 0.5, 1, 2, 3, 5, 10, 30},
	})
	t.batchTimes = promauto.NewHistogram(prometheus.HistogramOpts{
		Name: "batch_duration_seconds", Help: "From fetch to durable receipt",
	})
	promauto.NewGaugeFunc(
		prometheus.GaugeOpts{Name: "consume_rate", Help: "Messages/s processed over the last second"}, t.rate,
	)
	return t
}

const (
	mostRequests = 64 // at a time; a probe and a scrape are two
	silent       = 10 * time.Second // until a client has said what it wants
)

// local returns whether a request's Host is an address, or a name of this machine or of a cluster. A page in a browser may give
// its own name this program's address, and read what that answers; its Host is then that name.
func local(host string) bool {
	name := host
	if before, _, err := net.SplitHostPort(host); err == nil {
		name = before
	}
	name = strings.ToLower(strings.Trim(name, "[]"))
	inCluster := strings.HasSuffix(name, ".svc") || strings.HasSuffix(name, ".cluster.local")
	return net.ParseIP(name) != nil || !strings.Contains(name, ".") || inCluster
}

// guarded answers requests that only read, and that come to this machine by its own name.
func guarded(next http.Handler) http.Handler {
	free := make(chan struct{}, mostRequests)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		free <- struct{}{}
		defer func() { <-free }()
		switch {
		case r.Method != http.MethodGet:
			http.Error(w, "only GET", http.StatusNotImplemented)
		case !local(r.Host):
			http.Error(w, "another host", http.StatusForbidden)
		default:
			next.ServeHTTP(w, r)
		}
	})
}

// serve serves /metrics, /healthz and /readyz. It returns once it listens.
func (t *telemetry) serve(address string, port int, ready, healthy func() bool) error {
	answer := func(good func() bool) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			if !good() {
				http.Error(w, "no", http.StatusServiceUnavailable)
				return
			}
			fmt.Fprintln(w, "ok")
		}
	}
	listener, err := net.Listen("tcp", net.JoinHostPort(address, strconv.Itoa(port)))
	if err != nil {
		return err
	}
	http.Handle("/metrics", promhttp.Handler())
	http.Handle("/healthz", answer(healthy))
	http.Handle("/readyz", answer(ready))
	server := &http.Server{Handler: guarded(http.DefaultServeMux), ReadTimeout: silent, WriteTimeout: silent, IdleTimeout: silent}
	go func() { _ = server.Serve(listener) }()
	return nil
}

// say queues a report, with its wall time and its monotonic time in seconds.
func (t *telemetry) say(event string, more fields) {
	if t.topic == "" {
		return
	}
	row := fields{"pod": t.pod, "event": event, "t": now(), "mono": time.Since(anchor).Seconds()}
	maps.Copy(row, more)
	value, err := json.Marshal(row)
	if err != nil {
		panic(err) // a program's own fault
	}
	t.producer.Produce(context.Background(), &kgo.Record{Topic: t.topic, Key: []byte(t.pod), Value: value}, nil)
}

// owned reports a change of assignment that began at a time, or at nobody knows when where that is zero.
func (t *telemetry) owned(event string, partitions []int, owned int, began time.Time) {
	row := fields{"partitions": partitions, "owned": owned, "seconds": nil}
	if !began.IsZero() {
		row["seconds"] = time.Since(began).Seconds()
	}
	t.say(event, row)
	t.assigned.Set(float64(owned))
}

func (t *telemetry) rebalanced(began time.Time) {
	t.rebalances.Inc()
	if !began.IsZero() {
		t.rebalanceDuration.Observe(time.Since(began).Seconds())
	}
}

func (t *telemetry) commit(good bool) {
	t.commits.WithLabelValues(map[bool]string{true: "ok", false: "failed"}[good]).Inc()
}

// done counts a batch whose receipts are durable.
func (t *telemetry) done(count int, seconds float64) {
	t.processed.Add(float64(count))
	t.batchTimes.Observe(seconds)
	t.mu.Lock()
	defer t.mu.Unlock()
	t.recent = append(t.recent, batch{time.Now(), count})
}

func (t *telemetry) rate() float64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	for len(t.recent) > 0 && time.Since(t.recent[0].at) > time.Second {
		t.recent = t.recent[1:]
	}
	count := 0
	for _, one := range t.recent {
		count += one.count
	}
	return float64(count)
}
