package scaling

// Put this file into pkg/scaling of KEDA 2.19's repository, then: go test ./pkg/scaling -run TestCheckScalers_ACacheThatIsClosedDuringAQuery
// It needs no cluster and uses that package's own test helpers. It passes with KEDA 2.19.0, where a closed cache is an error.

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"go.uber.org/mock/gomock"
	v2 "k8s.io/api/autoscaling/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/record"
	"k8s.io/metrics/pkg/apis/external_metrics"

	kedav1alpha1 "github.com/kedacore/keda/v2/apis/keda/v1alpha1"
	"github.com/kedacore/keda/v2/pkg/mock/mock_client"
	mock_scalers "github.com/kedacore/keda/v2/pkg/mock/mock_scaler"
	"github.com/kedacore/keda/v2/pkg/mock/mock_scaling/mock_executor"
	"github.com/kedacore/keda/v2/pkg/scalers"
	"github.com/kedacore/keda/v2/pkg/scalers/scalersconfig"
	"github.com/kedacore/keda/v2/pkg/scaling/cache"
	"github.com/kedacore/keda/v2/pkg/scaling/cache/metricscache"
	"github.com/kedacore/keda/v2/pkg/scaling/executor"
)

// The HPA's query has failed and closes the cache of the scalers while the scale loop asks one of them.
func TestCheckScalers_ACacheThatIsClosedDuringAQuery(t *testing.T) {
	ctrl := gomock.NewController(t)
	mockClient := mock_client.NewMockClient(ctrl)
	mockExecutor := mock_executor.NewMockScaleExecutor(ctrl)
	recorder := record.NewFakeRecorder(10)
	scaler := mock_scalers.NewMockScaler(ctrl)
	factory := func() (scalers.Scaler, *scalersconfig.ScalerConfig, error) {
		return scaler, &scalersconfig.ScalerConfig{}, nil
	}
	scaledObject := kedav1alpha1.ScaledObject{
		ObjectMeta: metav1.ObjectMeta{Name: "test", Namespace: "test"},
		Spec: kedav1alpha1.ScaledObjectSpec{
			ScaleTargetRef: &kedav1alpha1.ScaleTarget{Name: "test"},
			Triggers:       []kedav1alpha1.ScaleTriggers{{Type: "kafka"}},
		},
	}
	closing := &cache.ScalersCache{
		ScaledObject: &scaledObject,
		Scalers:      []cache.ScalerBuilder{{Scaler: scaler, Factory: factory}},
		Recorder:     recorder,
	}
	specs := []v2.MetricSpec{createMetricSpec(1, "m")}
	scaler.EXPECT().GetMetricSpecForScaling(gomock.Any()).Return(specs).AnyTimes()
	scaler.EXPECT().Close(gomock.Any()).AnyTimes()
	scaler.EXPECT().GetMetricsAndActivity(gomock.Any(), gomock.Any()).DoAndReturn(
		func(ctx context.Context, _ string) ([]external_metrics.ExternalMetricValue, bool, error) {
			closing.Close(ctx)
			return nil, false, errors.New("timeout")
		}).AnyTimes()

	handler := scaleHandler{
		client:                   mockClient,
		scaleLoopContexts:        &sync.Map{},
		scaleExecutor:            mockExecutor,
		globalHTTPTimeout:        time.Duration(1000),
		recorder:                 recorder,
		scalerCaches:             map[string]*cache.ScalersCache{scaledObject.GenerateIdentifier(): closing},
		scalerCachesLock:         &sync.RWMutex{},
		scaledObjectsMetricCache: metricscache.NewMetricsCache(),
		rawMetricsSubscriptions:  map[string]*RawMetricSubscriptions{},
		metricToSubscriptions:    map[metricMeta][]*RawMetricSubscriptions{},
		subsLock:                 &sync.RWMutex{},
	}
	mockClient.EXPECT().Get(gomock.Any(), gomock.Any(), gomock.Any()).Return(nil).AnyTimes()
	asked := 0
	mockExecutor.EXPECT().RequestScale(gomock.Any(), gomock.Any(), gomock.Any(), gomock.Any(), gomock.Any()).AnyTimes().Do(
		func(_ context.Context, _ *kedav1alpha1.ScaledObject, isActive, isError bool, _ *executor.ScaleExecutorOptions) {
			asked++
			t.Logf("asked with active %v, error %v", isActive, isError)
			assert.True(t, isActive || isError, "a state that could not be read was asked to be scaled as inactive, without an error")
		})
	handler.checkScalers(context.Background(), &scaledObject, &sync.RWMutex{})
	assert.Equal(t, 1, asked)
}
