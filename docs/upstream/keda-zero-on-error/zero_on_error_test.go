package scaling

// Put this file into pkg/scaling of KEDA's repository, then: go test ./pkg/scaling -run TestCheckScalers_AStateThatCantBeReadIsNotInactive
// It needs no cluster and uses that package's own test helpers. It fails with KEDA 2.21.0.

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"go.uber.org/mock/gomock"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"

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

// The HPA's query has failed and closes the cache of the scalers; the scale loop looks at it meanwhile. What it gets is no state of
// the trigger. Taken for "inactive, without error" it lets RequestScale go on to zero as soon as the cooldown is over.
func TestCheckScalers_AStateThatCantBeReadIsNotInactive(t *testing.T) {
	ctrl := gomock.NewController(t)
	mockClient := mock_client.NewMockClient(ctrl)
	mockExecutor := mock_executor.NewMockScaleExecutor(ctrl)
	recorder := events.NewFakeRecorder(10)
	scaler := mock_scalers.NewMockScaler(ctrl)
	factory := func(context.Context) (scalers.Scaler, *scalersconfig.ScalerConfig, error) {
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
	startInFlightCloseRace(t, closing, scaler)

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
	mockExecutor.EXPECT().RequestScale(gomock.Any(), gomock.Any(), gomock.Any(), gomock.Any(), gomock.Any()).AnyTimes().DoAndReturn(
		func(_ context.Context, _ *kedav1alpha1.ScaledObject, isActive, isError bool, _ executor.ScaleExecutorOptions) executor.ScaleResult {
			assert.True(t, isActive || isError, "a state that could not be read was asked to be scaled as inactive, without an error")
			return executor.ScaleResult{}
		})
	handler.checkScalers(context.Background(), &scaledObject, &sync.RWMutex{})
}
