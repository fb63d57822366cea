package scalers

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	v2 "k8s.io/api/autoscaling/v2"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/scale"
	"k8s.io/client-go/tools/events"
	"k8s.io/metrics/pkg/apis/external_metrics"
	runtimeclient "sigs.k8s.io/controller-runtime/pkg/client"

	kedav1alpha1 "github.com/kedacore/keda/v2/apis/keda/v1alpha1"
	"github.com/kedacore/keda/v2/pkg/fallback"
	"github.com/kedacore/keda/v2/pkg/scaling/executor"
)

// scaledCase is a ScaledObject, the state of its target, and what a pass of the scale loop or some queries found.
type scaledCase struct {
	Object   kedav1alpha1.ScaledObject `json:"object"`
	Replicas int32                     `json:"replicas"`
	Ready    int                       `json:"ready"`

	Active        bool   `json:"active"`
	Error         bool   `json:"error"`
	CreatedAgo    int64  `json:"createdAgo"`
	LastActiveAgo *int64 `json:"lastActiveAgo"`

	MetricType v2.MetricTargetType `json:"metricType"`
	Target     float64             `json:"target"`
	Outcomes   []*float64          `json:"outcomes"` // null: the query failed
}

// scaleAnswer: Replicas is null where KEDA left the target alone; Active says that it stamped the time of activity; Polls that
// the loop queries the triggers itself.
type scaleAnswer struct {
	Replicas *int32 `json:"replicas"`
	Active   bool   `json:"active"`
	Polls    bool   `json:"polls"`
}

type observedAnswer struct {
	Value    *float64 `json:"value"`
	Fallback bool     `json:"fallback"`
	Failures int32    `json:"failures"`
}

func scaleCase(t *testing.T, one *scaledCase) (out answer) {
	synctest.Test(t, func(*testing.T) {
		object := one.prepared()
		object.CreationTimestamp = metav1.Time{Time: time.Now().Add(-time.Duration(one.CreatedAgo) * time.Second)}
		if one.LastActiveAgo != nil {
			object.Status.LastActiveTime = &metav1.Time{Time: time.Now().Add(-time.Duration(*one.LastActiveAgo) * time.Second)}
		}
		target := &fakeTarget{one: one}
		loop := executor.NewScaleExecutor(target, target, nil, time.Second, &events.FakeRecorder{})
		result := loop.RequestScale(context.Background(), object, one.Active, one.Error, executor.ScaleExecutorOptions{})
		if result.Error != nil {
			out.Refused = result.Error.Error()
		}
		out.Scale = &scaleAnswer{
			Replicas: target.set, Active: result.LastActiveTime != nil, Polls: !object.UsesHPAObservations(),
		}
	})
	return out
}

func observeCase(one *scaledCase) (out answer) {
	object := one.prepared()
	target := &fakeTarget{one: one}
	handler := fallback.ScaledObjectHandler{
		Ctx: context.Background(), KubeClient: target, ScaleClient: target, UpdateLock: &sync.RWMutex{}, ScaledObject: object,
	}
	spec := v2.MetricSpec{External: &v2.ExternalMetricSource{Target: GetMetricTargetMili(one.MetricType, one.Target)}}
	for _, outcome := range one.Outcomes {
		var values []external_metrics.ExternalMetricValue
		var failed error
		if outcome == nil {
			failed = errors.New("the query failed")
		} else {
			values = append(values, GenerateMetricInMili("m", *outcome))
		}
		metrics, inFallback, err := fallback.GetMetricsWithFallback(handler, values, failed, "m", spec)
		observed := observedAnswer{Fallback: inFallback}
		if err == nil {
			value := float64(metrics[0].Value.MilliValue()) / 1000
			observed.Value = &value
		}
		if health, found := object.Status.Health["m"]; found && health.NumberOfFailures != nil {
			observed.Failures = *health.NumberOfFailures
		}
		out.Observe = append(out.Observe, observed)
	}
	return out
}

func (c *scaledCase) prepared() *kedav1alpha1.ScaledObject {
	object := c.Object.DeepCopy()
	object.Status.ScaleTargetGVKR = &kedav1alpha1.GroupVersionKindResource{
		Group: "apps", Version: "v1", Kind: "Deployment", Resource: "deployments",
	}
	return object
}

// fakeTarget is the API server as far as KEDA asks it: a Deployment, its scale, its pods.
type fakeTarget struct {
	runtimeclient.Client
	one *scaledCase
	set *int32
}

func (f *fakeTarget) Get(_ context.Context, _ runtimeclient.ObjectKey, object runtimeclient.Object, _ ...runtimeclient.GetOption) error {
	deployment, is := object.(*appsv1.Deployment)
	if !is {
		return errors.New("there is only a Deployment")
	}
	deployment.Spec.Replicas = &f.one.Replicas
	return nil
}

func (f *fakeTarget) List(_ context.Context, list runtimeclient.ObjectList, _ ...runtimeclient.ListOption) error {
	ready := v1.Pod{Status: v1.PodStatus{
		Phase: v1.PodRunning, Conditions: []v1.PodCondition{{Type: v1.PodReady, Status: v1.ConditionTrue}},
	}}
	for range f.one.Ready {
		list.(*v1.PodList).Items = append(list.(*v1.PodList).Items, ready)
	}
	return nil
}

func (f *fakeTarget) Status() runtimeclient.SubResourceWriter { return fakeStatus{} }

func (f *fakeTarget) Scales(string) scale.ScaleInterface { return fakeScale{target: f} }

type fakeStatus struct {
	runtimeclient.SubResourceWriter
}

func (fakeStatus) Patch(context.Context, runtimeclient.Object, runtimeclient.Patch, ...runtimeclient.SubResourcePatchOption) error {
	return nil
}

type fakeScale struct {
	scale.ScaleInterface
	target *fakeTarget
}

func (s fakeScale) Get(context.Context, schema.GroupResource, string, metav1.GetOptions) (*autoscalingv1.Scale, error) {
	found := &autoscalingv1.Scale{}
	found.Spec.Replicas = s.target.one.Replicas
	return found, nil
}

func (s fakeScale) Update(
	_ context.Context, _ schema.GroupResource, wanted *autoscalingv1.Scale, _ metav1.UpdateOptions,
) (*autoscalingv1.Scale, error) {
	s.target.set = &wanted.Spec.Replicas
	return wanted, nil
}
