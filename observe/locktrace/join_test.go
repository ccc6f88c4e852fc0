package locktrace_test

import (
	"fmt"
	"reflect"
	"slices"
	"testing"

	"github.com/fencelock/fencelock/observe/locktrace"
)

// Each function of a joined trace calls those of all traces, in order, and is nil where all of them are. By reflection, so that no
// function of Trace can be forgotten.
func TestJoin(t *testing.T) {
	var told []string
	full := func(name string) *locktrace.Trace {
		tr := reflect.New(reflect.TypeFor[locktrace.Trace]()).Elem()
		for i := range tr.NumField() {
			field := tr.Type().Field(i)
			tr.Field(i).Set(reflect.MakeFunc(field.Type, func([]reflect.Value) []reflect.Value {
				told = append(told, name+field.Name)
				return nil
			}))
		}
		return tr.Addr().Interface().(*locktrace.Trace)
	}
	joined := reflect.ValueOf(locktrace.Join(full("a"), nil, new(locktrace.Trace), full("b"))).Elem()
	for i := range joined.NumField() {
		field := joined.Type().Field(i)
		if joined.Field(i).IsNil() {
			t.Fatalf("%s is not joined", field.Name)
		}
		told = nil
		joined.Field(i).Call([]reflect.Value{reflect.Zero(field.Type.In(0))})
		if want := []string{"a" + field.Name, "b" + field.Name}; !slices.Equal(told, want) {
			t.Errorf("%s called %v, want %v", field.Name, told, want)
		}
	}
	if got := fmt.Sprint(*locktrace.Join(nil, new(locktrace.Trace))); got != fmt.Sprint(locktrace.Trace{}) {
		t.Errorf("nothing joined is %s", got)
	}
}
