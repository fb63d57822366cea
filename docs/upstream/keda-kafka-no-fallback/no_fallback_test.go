package scaling

// Put this file into pkg/scaling of KEDA's repository, then: go test ./pkg/scaling -run TestGetScaledObjectMetrics_AScalerThatCantBeBuilt
// It needs no cluster and no broker: nothing listens at the trigger's address. It fails with KEDA 2.21.0.

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/mock/gomock"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	kedav1alpha1 "github.com/kedacore/keda/v2/apis/keda/v1alpha1"
	"github.com/kedacore/keda/v2/pkg/mock/mock_scaling/mock_executor"
	"github.com/kedacore/keda/v2/pkg/scalers/authentication"
	"github.com/kedacore/keda/v2/pkg/scaling/cache"
	"github.com/kedacore/keda/v2/pkg/scaling/cache/metricscache"
	"github.com/kedacore/keda/v2/pkg/scaling/executor"
)

// Three questions of the HPA and three turns of the scale loop, while no broker can be reached. None of them counts as a failure,
// because NewKafkaScaler connects: there is no scaler whose metric could fail. So the fallback never comes.
func TestGetScaledObjectMetrics_AScalerThatCantBeBuilt(t *testing.T) {
	scheme := runtime.NewScheme()
	require.NoError(t, kedav1alpha1.AddToScheme(scheme))
	require.NoError(t, appsv1.AddToScheme(scheme))
	scaledObject := &kedav1alpha1.ScaledObject{
		ObjectMeta: metav1.ObjectMeta{Name: "test", Namespace: "test"},
		Spec: kedav1alpha1.ScaledObjectSpec{
			ScaleTargetRef: &kedav1alpha1.ScaleTarget{Name: "test"},
			Fallback:       &kedav1alpha1.Fallback{FailureThreshold: 2, Replicas: 6, Behavior: kedav1alpha1.FallbackBehaviorStatic},
			Triggers: []kedav1alpha1.ScaleTriggers{{
				Type:     "kafka",
				Metadata: map[string]string{"bootstrapServers": "127.0.0.1:1", "consumerGroup": "group", "topic": "topic"},
			}},
		},
		Status: kedav1alpha1.ScaledObjectStatus{
			ScaleTargetGVKR:     &kedav1alpha1.GroupVersionKindResource{Group: "apps", Version: "v1", Kind: "Deployment", Resource: "deployments"},
			ExternalMetricNames: []string{"s0-kafka-topic"},
		},
	}
	deployment := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: "test", Namespace: "test"}}
	kubeClient := fake.NewClientBuilder().WithScheme(scheme).WithObjects(scaledObject, deployment).WithStatusSubresource(scaledObject).Build()

	ctrl := gomock.NewController(t)
	mockExecutor := mock_executor.NewMockScaleExecutor(ctrl)
	mockExecutor.EXPECT().RequestScale(gomock.Any(), gomock.Any(), gomock.Any(), gomock.Any(), gomock.Any()).AnyTimes().Return(executor.ScaleResult{})
	handler := scaleHandler{
		client:                   kubeClient,
		scaleLoopContexts:        &sync.Map{},
		scaleExecutor:            mockExecutor,
		globalHTTPTimeout:        time.Second,
		recorder:                 events.NewFakeRecorder(100),
		scalerCaches:             map[string]*cache.ScalersCache{},
		scalerCachesLock:         &sync.RWMutex{},
		scaledObjectsMetricCache: metricscache.NewMetricsCache(),
		authClientSet:            &authentication.AuthClientSet{},
		rawMetricsSubscriptions:  map[string]*RawMetricSubscriptions{},
		metricToSubscriptions:    map[metricMeta][]*RawMetricSubscriptions{},
		subsLock:                 &sync.RWMutex{},
	}
	ctx := context.Background()
	for range 3 {
		handler.checkScalers(ctx, scaledObject.DeepCopy(), &sync.Mutex{})
		_, err := handler.GetScaledObjectMetrics(ctx, "test", "test", "s0-kafka-topic")
		if err != nil {
			t.Logf("the HPA is answered: %v", err)
		}
	}

	found := &kedav1alpha1.ScaledObject{}
	require.NoError(t, kubeClient.Get(ctx, types.NamespacedName{Name: "test", Namespace: "test"}, found))
	health, counted := found.Status.Health["s0-kafka-topic"]
	require.True(t, counted, "no failure of the trigger was counted")
	assert.GreaterOrEqual(t, *health.NumberOfFailures, int32(2))
	fallback := found.Status.Conditions.GetFallbackCondition()
	assert.True(t, fallback.IsTrue(), "the fallback did not come")
}
