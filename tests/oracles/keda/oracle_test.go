// Drives KEDA's own code with cases that Python wrote, and writes what it answers.
//
// It is compiled into a package that holds KEDA's scaler files as they are in the pinned module (see __init__.py), so that it can
// call what they don't export. It is a test only because Go's fake clock (testing/synctest) wants one.
//
// In: one JSON case a line. Out: one JSON answer a line.
package scalers

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	v2 "k8s.io/api/autoscaling/v2"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/metrics/pkg/apis/external_metrics"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	pb "github.com/kedacore/keda/v2/pkg/scalers/externalscaler"
	"github.com/kedacore/keda/v2/pkg/scalers/scalersconfig"
)

// Declared in a file of KEDA's that is not compiled here (azure_queue_scaler.go).
const externalMetricType = "External"

type oracleCase struct {
	Kind string `json:"kind"`

	// A trigger: kafka, apache-kafka, prometheus, cron, cpu, memory, external.
	Index       int                 `json:"index"`
	Metadata    map[string]string   `json:"metadata"`
	Environment map[string]string   `json:"environment"`
	MetricType  v2.MetricTargetType `json:"metricType"`
	Calls       []kafkaCall         `json:"calls"`
	At          []int64             `json:"at"`       // cron: seconds since 1970
	Elements    []string            `json:"elements"` // prometheus
	Name        string              `json:"name"`     // external: what the scaler answers
	Target      float64             `json:"target"`

	// The scale loop and fallback.
	Scaled *scaledCase  `json:"scaled"`
	Values [][]*float64 `json:"values"` // formula: by call and trigger, null for one that falls back
}

type answer struct {
	Refused  string            `json:"refused,omitempty"`
	Metrics  []v2.MetricSpec   `json:"metrics,omitempty"`
	Calls    []callAnswer      `json:"calls,omitempty"`
	Scale    *scaleAnswer      `json:"scale,omitempty"`
	Observe  []observedAnswer  `json:"observe,omitempty"`
	Composed []*composedAnswer `json:"composed,omitempty"`
}

type callAnswer struct {
	Value  float64 `json:"value"`
	Active bool    `json:"active"`
	Error  string  `json:"error,omitempty"`
}

func called(values []external_metrics.ExternalMetricValue, active bool, err error) callAnswer {
	if err != nil {
		return callAnswer{Error: err.Error()}
	}
	return callAnswer{Value: float64(values[0].Value.MilliValue()) / 1000, Active: active}
}

// canonical writes the targets in one form: Kubernetes prints some quantities as they were parsed ("12.346", "12346m").
func canonical(specs []v2.MetricSpec) []v2.MetricSpec {
	for _, spec := range specs {
		var target *v2.MetricTarget
		switch {
		case spec.External != nil:
			target = &spec.External.Target
		case spec.Resource != nil:
			target = &spec.Resource.Target
		default:
			target = &spec.ContainerResource.Target
		}
		for _, quantity := range []*resource.Quantity{target.AverageValue, target.Value} {
			if quantity != nil {
				format := resource.DecimalSI
				if quantity.Format == resource.BinarySI {
					format = quantity.Format
				}
				*quantity = *resource.NewDecimalQuantity(*quantity.AsDec(), format)
			}
		}
	}
	return specs
}

func TestOracle(t *testing.T) {
	logf.SetLogger(logr.Discard())
	in, out := bufio.NewReaderSize(os.Stdin, 1<<16), bufio.NewWriterSize(os.Stdout, 1<<16)
	encoder := json.NewEncoder(out)
	broker := newFakeBroker(t)
	for {
		if in.Buffered() == 0 { // whoever asked waits
			if err := out.Flush(); err != nil {
				t.Fatal(err)
			}
		}
		line, err := in.ReadBytes('\n')
		if err == io.EOF {
			return
		}
		var one oracleCase
		if err == nil {
			err = json.Unmarshal(line, &one)
		}
		if err != nil {
			t.Fatal(err)
		}
		told := answered(t, &one, broker)
		told.Metrics = canonical(told.Metrics)
		if err := encoder.Encode(told); err != nil {
			t.Fatal(err)
		}
	}
}

func answered(t *testing.T, one *oracleCase, broker *fakeBroker) answer {
	config := &scalersconfig.ScalerConfig{
		TriggerType:     one.Kind,
		TriggerIndex:    one.Index,
		TriggerMetadata: one.Metadata,
		ResolvedEnv:     one.Environment,
		AuthParams:      map[string]string{},
		MetricType:      one.MetricType,
	}
	switch one.Kind {
	case "kafka":
		return kafkaAnswer(config, one.Calls, broker)
	case "apache-kafka":
		return apacheAnswer(config, one.Calls)
	case "cron":
		return cronAnswer(t, config, one.At)
	case "prometheus":
		return prometheusAnswer(config, one.Elements)
	case "cpu", "memory":
		return resourceAnswer(config)
	case "external":
		return externalAnswer(config, one.Name, one.Target)
	case "scale":
		return scaleCase(t, one.Scaled)
	case "observe":
		return observeCase(one.Scaled)
	case "formula":
		return formulaAnswer(&one.Scaled.Object, one.Values)
	}
	return answer{Refused: "no such kind: " + one.Kind}
}

func cronAnswer(t *testing.T, config *scalersconfig.ScalerConfig, at []int64) (out answer) {
	scaler, err := NewCronScaler(config)
	if err != nil {
		return answer{Refused: err.Error()}
	}
	out.Metrics = scaler.GetMetricSpecForScaling(context.Background())
	for _, second := range at {
		// A bubble begins in 2000, and sleeping in it takes no time.
		synctest.Test(t, func(*testing.T) {
			time.Sleep(time.Until(time.Unix(second, 0)))
			out.Calls = append(out.Calls, called(scaler.GetMetricsAndActivity(context.Background(), "m")))
		})
	}
	return out
}

type transport func() string

func (answer transport) RoundTrip(*http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: http.StatusOK, Body: io.NopCloser(strings.NewReader(answer()))}, nil
}

func prometheusAnswer(config *scalersconfig.ScalerConfig, elements []string) (out answer) {
	metricType, err := GetMetricTargetType(config)
	if err != nil {
		return answer{Refused: err.Error()}
	}
	metadata, err := parsePrometheusMetadata(config)
	if err != nil {
		return answer{Refused: err.Error()}
	}
	vector := make([]string, 0, len(elements))
	for _, value := range elements {
		vector = append(vector, fmt.Sprintf(`{"metric":{},"value":[0,%q]}`, value))
	}
	body := fmt.Sprintf(`{"status":"success","data":{"resultType":"vector","result":[%s]}}`, strings.Join(vector, ","))
	client := &http.Client{Transport: transport(func() string { return body })}
	scaler := &prometheusScaler{metricType: metricType, metadata: metadata, httpClient: client, logger: logr.Discard()}
	out.Metrics = scaler.GetMetricSpecForScaling(context.Background())
	out.Calls = []callAnswer{called(scaler.GetMetricsAndActivity(context.Background(), "m"))}
	return out
}

func resourceAnswer(config *scalersconfig.ScalerConfig) (out answer) {
	defer func() {
		// KEDA parses the quantity with MustParse.
		if reason := recover(); reason != nil {
			out = answer{Refused: fmt.Sprint(reason)}
		}
	}()
	scaler, err := NewCPUMemoryScaler(v1.ResourceName(config.TriggerType), config)
	if err != nil {
		return answer{Refused: err.Error()}
	}
	return answer{Metrics: scaler.GetMetricSpecForScaling(context.Background())}
}

func externalAnswer(config *scalersconfig.ScalerConfig, name string, target float64) answer {
	metricType, err := GetMetricTargetType(config)
	if err != nil {
		return answer{Refused: err.Error()}
	}
	metadata, err := parseExternalScalerMetadata(config)
	if err != nil {
		return answer{Refused: err.Error()}
	}
	metadata.triggerIndex = config.TriggerIndex
	scaler := &externalScaler{metricType: metricType, metadata: metadata, logger: logr.Discard()}
	response := &pb.GetMetricSpecResponse{MetricSpecs: []*pb.MetricSpec{{MetricName: name, TargetSizeFloat: target}}}
	return answer{Metrics: scaler.buildMetricSpecs(response)}
}
