package main

import (
	"cmp"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/sasl/plain"
)

// settings are those of the lab's Python program, under the same names.
type settings struct {
	pod                          string // also the client.id: two members must never share one
	bootstrap, topics            []string
	topicPartitions              int
	group                        string
	receiptsTopic, reportsTopic  string
	login                        []kgo.Opt
	podIP                        string
	metricsPort                  int
	low, high                    float64 // processing time of a message, ms
	concurrency                  float64
	batch, poll                  int // messages
	batchTime                    time.Duration
	balancer, reset              string
	static, auto, drain          bool
	stock, joins                 bool
	commitInterval, drainTimeout time.Duration
	heartbeat, session, metadata time.Duration
	fetch                        int32 // bytes of a partition
	start, warmup, live          time.Duration
}

// secret is the flag whose value is never shown.
const secret = "kafka-settings"

// text has the flags that take text: default, and what it is. numbers has those that take a number from 0.
var (
	text = map[string][2]string{
		"bootstrap-servers": {"", "Kafka's address"},
		secret:              {"", "login to Kafka: a JSON object of librdkafka's settings"},
		"pod-ip":            {"127.0.0.1", "address to serve /metrics on"},
		"group":             {"enrich", "consumer group"},
		"topic":             {"events", "the topic; of several the first: the others have its name and -2, -3 and so on"},
		"receipts-topic":    {"receipts", "topic that stands for the downstream store"},
		"reports-topic":     {"reports", "topic for the recorder's group events"},
		"process-ms":        {"2-10", "processing time of a message: 6 or 2-10, ms"},
		"balancer":          {"cooperative-sticky", "cooperative-sticky, range, roundrobin, or consumer: KIP-848"},
		"membership":        {"dynamic", "dynamic or static"},
		"commit":            {"manual", "manual commits follow receipts; auto commits what was fetched"},
		"drain":             {"on", "finish, commit and leave on SIGTERM, or just die"},
		"client-settings":   {"lab", "lab, or stock: franz-go's own defaults"},
		"auto-offset-reset": {"earliest", "where a new group starts: earliest or latest"},
		"join":              {"on", "off: start like any consumer, but stay out of the group"},
	}
	numbers = map[string][2]string{
		"metrics-port":        {"9090", "port to serve /metrics on; 0 picks one"},
		"topics":              {"1", "topics that the partitions are spread over"},
		"topic-partitions":    {"0", "partitions of each topic, where there are several"},
		"concurrency":         {"6", "messages processed at the same time"},
		"batch-ms":            {"50", "how much work shares a write to the store, ms"},
		"poll-ms":             {"50", "how much work is taken, and is in flight, at a time, ms"},
		"commit-interval-ms":  {"5000", "least time between commits, ms"},
		"drain-timeout":       {"20", "longest wait for work in flight, s"},
		"heartbeat-ms":        {"500", "heartbeat interval of classic members, ms"},
		"session-timeout-ms":  {"10000", "session timeout of classic members, ms"},
		"partition-fetch-kib": {"64", "most that is fetched of a partition at a time, KiB"},
		"metadata-refresh-ms": {"300000", "how often the client looks for new partitions, ms"},
		"start-s":             {"0", "least time from the process's start until it joins, s"},
		"partition-warmup-ms": {"0", "work per newly assigned partition, ms"},
		"liveness-s":          {"120", "how long the loop may stand, s"},
	}
)

// parse reads flags; each defaults to its environment variable, as -process-ms to PROCESS_MS. An error has a line for each.
func parse(arguments []string) (settings, error) {
	flags := flag.NewFlagSet("consumer-franz-go", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	given := map[string]*string{}
	for _, declared := range []map[string][2]string{text, numbers} {
		for name, one := range declared {
			variable := strings.ToUpper(strings.ReplaceAll(name, "-", "_"))
			value, found := os.LookupEnv(variable)
			if !found || name == secret {
				value = one[0]
			}
			given[name] = flags.String(name, value, fmt.Sprintf("%s [%s]", one[1], variable))
		}
	}
	if err := flags.Parse(arguments); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			flags.SetOutput(os.Stdout)
			flags.PrintDefaults()
			os.Exit(0)
		}
		return settings{}, err
	}
	var wrong []error
	refuse := func(name, allowed string) {
		wrong = append(wrong, fmt.Errorf("-%s: %q is not allowed; allowed: %s", name, *given[name], allowed))
	}
	number := func(name string) float64 {
		value, err := strconv.ParseFloat(*given[name], 64)
		if err != nil || value < 0 || math.IsInf(value, 0) || math.IsNaN(value) {
			refuse(name, "a number from 0")
		}
		return value
	}
	span := func(name string, unit time.Duration) time.Duration {
		return time.Duration(number(name) * float64(unit))
	}
	word := func(name string, allowed ...string) string {
		if !slices.Contains(allowed, *given[name]) {
			refuse(name, strings.Join(allowed, " or "))
		}
		return *given[name]
	}
	s := settings{
		pod:             os.Getenv("HOSTNAME"),
		bootstrap:       strings.Split(*given["bootstrap-servers"], ","),
		topics:          []string{*given["topic"]},
		topicPartitions: int(number("topic-partitions")),
		group:           *given["group"],
		receiptsTopic:   *given["receipts-topic"],
		reportsTopic:    *given["reports-topic"],
		podIP:           *given["pod-ip"],
		metricsPort:     int(number("metrics-port")),
		concurrency:     number("concurrency"),
		batchTime:       span("batch-ms", time.Millisecond),
		balancer:        word("balancer", "cooperative-sticky", "range", "roundrobin", "consumer"),
		reset:           word("auto-offset-reset", "earliest", "latest"),
		static:          word("membership", "dynamic", "static") == "static",
		auto:            word("commit", "manual", "auto") == "auto",
		drain:           word("drain", "on", "off") == "on",
		stock:           word("client-settings", "lab", "stock") == "stock",
		joins:           word("join", "on", "off") == "on",
		commitInterval:  span("commit-interval-ms", time.Millisecond),
		drainTimeout:    span("drain-timeout", time.Second),
		heartbeat:       span("heartbeat-ms", time.Millisecond),
		session:         span("session-timeout-ms", time.Millisecond),
		metadata:        span("metadata-refresh-ms", time.Millisecond),
		fetch:           int32(number("partition-fetch-kib") * 1024),
		start:           span("start-s", time.Second),
		warmup:          span("partition-warmup-ms", time.Millisecond),
		live:            span("liveness-s", time.Second),
	}
	if s.pod == "" {
		s.pod = fmt.Sprintf("consumer-%d", os.Getpid())
	}
	if *given["bootstrap-servers"] == "" {
		refuse("bootstrap-servers", "host:port")
	}
	for count := 2; count <= int(number("topics")); count++ {
		s.topics = append(s.topics, fmt.Sprintf("%s-%d", s.topics[0], count))
	}
	low, high, ranged := strings.Cut(*given["process-ms"], "-")
	if !ranged {
		high = low
	}
	var lowErr, highErr error
	s.low, lowErr = strconv.ParseFloat(low, 64)
	s.high, highErr = strconv.ParseFloat(high, 64)
	if lowErr != nil || highErr != nil || s.low <= 0 || s.high < s.low {
		refuse("process-ms", "6 or 2-10")
	}
	var err error
	if s.login, err = login(cmp.Or(*given[secret], os.Getenv("KAFKA_SETTINGS"))); err != nil {
		wrong = append(wrong, err)
	}
	s.batch = s.taking(number("batch-ms"))
	s.poll = max(s.batch, s.taking(number("poll-ms")))
	return s, errors.Join(wrong...)
}

// taking returns how many messages take so long at the pod's rate.
func (s settings) taking(milliseconds float64) int {
	return max(1, int(math.RoundToEven(milliseconds*s.concurrency/((s.low+s.high)/2))))
}

// number returns the trial's number for a partition of a topic.
func (s settings) number(topic string, partition int32) int {
	return slices.Index(s.topics, topic)*s.topicPartitions + int(partition)
}

// login returns the options of a login that the lab's own broker asks for. Its errors show no value.
func login(text string) ([]kgo.Opt, error) {
	if text == "" {
		return nil, nil
	}
	var given map[string]string
	if err := json.Unmarshal([]byte(text), &given); err != nil {
		return nil, errors.New("-kafka-settings: (not shown) is not allowed; allowed: a JSON object of strings")
	}
	if given["security.protocol"] != "SASL_PLAINTEXT" || given["sasl.mechanism"] != "PLAIN" {
		return nil, errors.New("-kafka-settings: (not shown) is not allowed; allowed: SASL_PLAINTEXT with PLAIN")
	}
	user := plain.Auth{User: given["sasl.username"], Pass: given["sasl.password"]}
	return []kgo.Opt{kgo.SASL(user.AsMechanism())}, nil
}
