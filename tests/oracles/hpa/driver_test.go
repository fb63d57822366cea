// Drives the HPA controller's own code: this file is compiled into a copy of package podautoscaler and runs it under the fake
// clock of testing/synctest. It reads batches of cases as JSON, one batch a line, and answers each with a line of what was done.
package podautoscaler

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	v1 "k8s.io/api/core/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	autoscalingclient "k8s.io/client-go/kubernetes/typed/autoscaling/v2"
	corelisters "k8s.io/client-go/listers/core/v1"
	scaleclient "k8s.io/client-go/scale"
	"k8s.io/client-go/tools/record"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/apis/autoscaling"
	apiv2 "k8s.io/kubernetes/pkg/apis/autoscaling/v2"
	"k8s.io/kubernetes/pkg/apis/autoscaling/validation"
	metricsclient "k8s.io/kubernetes/pkg/controller/podautoscaler/metrics"
	"k8s.io/kubernetes/pkg/controller/podautoscaler/monitor"
	"k8s.io/kubernetes/pkg/controller/util/selectors"
)

const (
	namespace = "oracle"
	name      = "oracle"
	selector  = "app=oracle"
)

// testCase and what it holds are written by the Python side. All times are nanoseconds; those of pods and samples count from
// the start of the case.
type testCase struct {
	HPAs       []json.RawMessage `json:"hpas"`
	Replicas   int32             `json:"replicas"`
	Controller settings          `json:"controller"`
	Steps      []step            `json:"steps"`
}

type settings struct {
	Tolerance         float64       `json:"tolerance"`
	DownscaleWindow   time.Duration `json:"downscale_stabilization"`
	CPUInitialization time.Duration `json:"cpu_initialization"`
	InitialReadiness  time.Duration `json:"initial_readiness"`
}

type step struct {
	Advance  time.Duration  `json:"advance"`
	HPA      int            `json:"hpa"`
	Replicas *int32         `json:"replicas"` // what someone else made of the scale
	Status   *int32         `json:"status"`
	Pods     *[]podCase     `json:"pods"` // nil: as many ready ones as the status says
	Observed []*observation `json:"observed"`
}

type podCase struct {
	Name     string           `json:"name"`
	Phase    v1.PodPhase      `json:"phase"`
	Ready    *bool            `json:"ready"`
	Started  *time.Duration   `json:"started"`
	Changed  time.Duration    `json:"ready_changed"`
	Deleting bool             `json:"deleting"`
	Requests map[string]int64 `json:"requests"` // milli-units, by resource
}

type observation struct {
	External []int64          `json:"external"`
	Usage    map[string]usage `json:"usage"`
}

type usage struct {
	Milli  int64         `json:"milli"`
	At     time.Duration `json:"at"`
	Window time.Duration `json:"window"`
}

type answer struct {
	Refused string   `json:"refused"`
	Syncs   []synced `json:"syncs"`
}

type synced struct {
	Desired    int32       `json:"desired"`
	Error      string      `json:"error"`
	Conditions [][3]string `json:"conditions"`
}

// world is everything the controller talks to.
type world struct {
	scale    autoscalingv1.Scale
	status   autoscalingv2.HorizontalPodAutoscalerStatus
	pods     []*v1.Pod
	observed []*observation // in the order of the HPA's metrics: the controller asks for each once, in that order
}

type scales struct {
	scaleclient.ScaleInterface
	*world
}

func (s scales) Scales(string) scaleclient.ScaleInterface { return s }

func (s scales) Get(context.Context, schema.GroupResource, string, metav1.GetOptions) (*autoscalingv1.Scale, error) {
	return s.scale.DeepCopy(), nil
}

func (s scales) Update(_ context.Context, _ schema.GroupResource, scale *autoscalingv1.Scale, _ metav1.UpdateOptions) (*autoscalingv1.Scale, error) {
	s.scale.Spec = scale.Spec
	return scale, nil
}

type hpas struct {
	autoscalingclient.HorizontalPodAutoscalerInterface
	*world
}

func (h hpas) HorizontalPodAutoscalers(string) autoscalingclient.HorizontalPodAutoscalerInterface {
	return h
}

func (h hpas) UpdateStatus(_ context.Context, hpa *autoscalingv2.HorizontalPodAutoscaler, _ metav1.UpdateOptions) (*autoscalingv2.HorizontalPodAutoscaler, error) {
	h.status = hpa.Status
	return hpa, nil
}

type mapper struct{ apimeta.RESTMapper }

func (mapper) RESTMappings(schema.GroupKind, ...string) ([]*apimeta.RESTMapping, error) {
	return []*apimeta.RESTMapping{{Resource: schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}}}, nil
}

type podLister struct {
	corelisters.PodLister
	*world
}

func (p podLister) Pods(string) corelisters.PodNamespaceLister {
	return podNamespaceLister{world: p.world}
}

type podNamespaceLister struct {
	corelisters.PodNamespaceLister
	*world
}

func (p podNamespaceLister) List(labels.Selector) ([]*v1.Pod, error) { return p.pods, nil }

type metricValues struct {
	metricsclient.MetricsClient
	*world
	begun time.Time
}

func (m metricValues) next() (*observation, error) {
	first := m.observed[0]
	m.observed = m.observed[1:]
	if first == nil {
		return nil, errors.New("no value")
	}
	return first, nil
}

func (m metricValues) GetExternalMetric(string, string, labels.Selector) ([]int64, time.Time, error) {
	value, err := m.next()
	if err != nil {
		return nil, time.Time{}, err
	}
	return value.External, time.Now(), nil
}

func (m metricValues) GetResourceMetric(context.Context, v1.ResourceName, string, labels.Selector, string) (metricsclient.PodMetricsInfo, time.Time, error) {
	value, err := m.next()
	if err != nil {
		return nil, time.Time{}, err
	}
	info := metricsclient.PodMetricsInfo{}
	for pod, sample := range value.Usage {
		info[pod] = metricsclient.PodMetric{Timestamp: m.begun.Add(sample.At), Window: sample.Window, Value: sample.Milli}
	}
	return info, time.Now(), nil
}

// TestOracle answers until its input ends.
func TestOracle(t *testing.T) {
	input := bufio.NewReaderSize(os.Stdin, 1<<20)
	output := bufio.NewWriterSize(os.Stdout, 1<<20)
	for {
		line, err := input.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			return
		}
		var cases []testCase
		if err == nil {
			err = json.Unmarshal(line, &cases)
		}
		if err != nil {
			t.Fatal(err)
		}
		answers := make([]answer, len(cases))
		for i := range cases {
			synctest.Test(t, func(*testing.T) { answers[i] = run(&cases[i]) })
		}
		if err := json.NewEncoder(output).Encode(answers); err != nil {
			t.Fatal(err)
		}
		if err := output.Flush(); err != nil {
			t.Fatal(err)
		}
	}
}

func run(c *testCase) answer {
	specs := make([]*autoscalingv2.HorizontalPodAutoscaler, len(c.HPAs))
	for i, text := range c.HPAs {
		hpa, err := admitted(text)
		if err != nil {
			return answer{Refused: err.Error()}
		}
		specs[i] = hpa
	}
	begun := time.Now()
	w := &world{}
	w.scale.Spec.Replicas = c.Replicas
	w.scale.Status.Selector = selector
	lister := podLister{world: w}
	controller := &HorizontalController{
		scaleNamespacer:              scales{world: w},
		hpaNamespacer:                hpas{world: w},
		mapper:                       mapper{},
		tolerance:                    c.Controller.Tolerance,
		replicaCalc:                  NewReplicaCalculator(metricValues{world: w, begun: begun}, lister, c.Controller.CPUInitialization, c.Controller.InitialReadiness),
		eventRecorder:                &record.FakeRecorder{},
		downscaleStabilisationWindow: c.Controller.DownscaleWindow,
		monitor:                      monitor.New(),
		podLister:                    lister,
		recommendations:              map[string][]timestampedRecommendation{},
		scaleUpEvents:                map[string][]timestampedScaleEvent{},
		scaleDownEvents:              map[string][]timestampedScaleEvent{},
		hpaSelectors:                 selectors.NewBiMultimap(),
	}
	controller.hpaSelectors.PutSelector(selectors.Key{Name: name, Namespace: namespace}, labels.Nothing()) // as enqueueHPA does
	ctx := klog.NewContext(context.Background(), logr.Discard())

	syncs := make([]synced, 0, len(c.Steps))
	for _, s := range c.Steps {
		time.Sleep(s.Advance)
		if s.Replicas != nil {
			w.scale.Spec.Replicas = *s.Replicas
		}
		w.scale.Status.Replicas = w.scale.Spec.Replicas
		if s.Status != nil {
			w.scale.Status.Replicas = *s.Status
		}
		w.pods = podsOf(s, begun, w.scale.Status.Replicas, specs[s.HPA])
		w.observed = s.Observed
		hpa := specs[s.HPA].DeepCopy()
		hpa.Status = w.status
		result := synced{}
		if err := controller.reconcileAutoscaler(ctx, hpa, namespace+"/"+name); err != nil {
			result.Error = err.Error()
		}
		result.Desired = w.scale.Spec.Replicas
		for _, condition := range w.status.Conditions {
			result.Conditions = append(result.Conditions, [3]string{string(condition.Type), string(condition.Status), condition.Reason})
		}
		syncs = append(syncs, result)
	}
	return answer{Syncs: syncs}
}

// admitted is the HPA as the controller reads it: defaulted and validated by the API server's functions, its quantities in the
// canonical form in which they are stored.
func admitted(text []byte) (*autoscalingv2.HorizontalPodAutoscaler, error) {
	written := &autoscalingv2.HorizontalPodAutoscaler{}
	if err := json.Unmarshal(text, written); err != nil {
		return nil, err
	}
	written.Name, written.Namespace = name, namespace
	apiv2.SetObjectDefaults_HorizontalPodAutoscaler(written)
	internal := &autoscaling.HorizontalPodAutoscaler{}
	if err := apiv2.Convert_v2_HorizontalPodAutoscaler_To_autoscaling_HorizontalPodAutoscaler(written.DeepCopy(), internal, nil); err != nil {
		return nil, err
	}
	options := validation.HorizontalPodAutoscalerSpecValidationOptions{MinReplicasLowerBound: 1}
	if faults := validation.ValidateHorizontalPodAutoscaler(internal, options); len(faults) > 0 {
		return nil, faults.ToAggregate()
	}
	stored, err := json.Marshal(written)
	if err != nil {
		return nil, err
	}
	read := &autoscalingv2.HorizontalPodAutoscaler{}
	return read, json.Unmarshal(stored, read)
}

// podsOf gives the target's pods; only a metric that counts ready pods or reads their usage makes the controller look at them.
func podsOf(s step, begun time.Time, replicas int32, hpa *autoscalingv2.HorizontalPodAutoscaler) []*v1.Pod {
	cases := []podCase{}
	if s.Pods != nil {
		cases = *s.Pods
	} else if counted(hpa) {
		yes, start := true, time.Duration(0)
		for i := range replicas {
			cases = append(cases, podCase{Name: fmt.Sprint("pod-", i), Phase: v1.PodRunning, Ready: &yes, Started: &start})
		}
	}
	pods := make([]*v1.Pod, len(cases))
	for i, c := range cases {
		pods[i] = pod(c, begun)
	}
	return pods
}

func counted(hpa *autoscalingv2.HorizontalPodAutoscaler) bool {
	for _, metric := range hpa.Spec.Metrics {
		if metric.External == nil || metric.External.Target.AverageValue == nil {
			return true
		}
	}
	return false
}

func pod(c podCase, begun time.Time) *v1.Pod {
	made := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Name: c.Name, Namespace: namespace, Labels: map[string]string{"app": "oracle"}}}
	made.Status.Phase = c.Phase
	if c.Started != nil {
		started := metav1.NewTime(begun.Add(*c.Started))
		made.Status.StartTime = &started
	}
	if c.Ready != nil {
		status := v1.ConditionFalse
		if *c.Ready {
			status = v1.ConditionTrue
		}
		changed := metav1.NewTime(begun.Add(c.Changed))
		made.Status.Conditions = []v1.PodCondition{{Type: v1.PodReady, Status: status, LastTransitionTime: changed}}
	}
	if c.Deleting {
		now := metav1.Now()
		made.DeletionTimestamp = &now
	}
	container := v1.Container{Name: "main"}
	container.Resources.Requests = v1.ResourceList{}
	for name, milli := range c.Requests {
		container.Resources.Requests[v1.ResourceName(name)] = *resource.NewMilliQuantity(milli, resource.DecimalSI)
	}
	made.Spec.Containers = []v1.Container{container}
	return made
}
