package scalers

import (
	"fmt"

	"github.com/expr-lang/expr"
	"k8s.io/apimachinery/pkg/api/resource"

	kedav1alpha1 "github.com/kedacore/keda/v2/apis/keda/v1alpha1"
)

// composedAnswer: Approx is what activationTarget is compared with.
type composedAnswer struct {
	Milli  int64   `json:"milli"`
	Approx float64 `json:"approx"`
}

// formulaAnswer compiles the formula as KEDA does, and runs it on a value for each trigger, nil for one that falls back to it.
// What becomes of the result is written as in calculateScalingModifiersFormula, whose package takes every scaler to compile. A
// call is nil where that fails.
func formulaAnswer(object *kedav1alpha1.ScaledObject, calls [][]*float64) (out answer) {
	program, err := kedav1alpha1.ValidateAndCompileScalingModifiers(object)
	if err != nil {
		return answer{Refused: err.Error()}
	}
	for _, values := range calls {
		data := make(map[string]any)
		for index, value := range values {
			name := object.Spec.Triggers[index].Name
			data[name] = nil
			if value != nil {
				metric := GenerateMetricInMili(fmt.Sprintf("s%d", index), *value)
				data[name] = metric.Value.AsApproximateFloat64()
			}
		}
		found, err := expr.Run(program, data)
		out.Composed = append(out.Composed, composed(object, found, err))
	}
	return out
}

func composed(object *kedav1alpha1.ScaledObject, found any, err error) *composedAnswer {
	if err != nil || (found == nil && object.Spec.Fallback == nil) {
		return nil
	}
	if found == nil {
		target := resource.MustParse(object.Spec.Advanced.ScalingModifiers.Target)
		found = float64(object.Spec.Fallback.Replicas) * target.AsApproximateFloat64()
	}
	value, is := found.(float64)
	if !is {
		return nil
	}
	var quantity resource.Quantity
	quantity.SetMilli(int64(value * 1000))
	return &composedAnswer{Milli: quantity.MilliValue(), Approx: quantity.AsApproximateFloat64()}
}
