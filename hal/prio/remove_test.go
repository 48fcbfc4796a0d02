package prio

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

type value struct {
	level uint8
	name  int
}

func TestRemoveTakesOneAndKeepsTheOrderOfTheOthers(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var q Queue[value]
		var model []value
		for i := range rapid.IntRange(1, 60).Draw(t, "steps") {
			v := value{rapid.Uint8Range(0, levels-1).Draw(t, "level"), i}
			switch rapid.IntRange(0, 3).Draw(t, "step") {
			case 0, 1:
				q.Push(v.level, v)
				model = append(model, v)
			case 2:
				name := rapid.IntRange(0, 59).Draw(t, "name")
				at := slices.IndexFunc(model, func(o value) bool { return o.level == v.level && o.name == name })
				found := q.Remove(v.level, func(o value) bool { return o.name == name })
				require.Equal(t, at >= 0, found)
				if found {
					model = slices.Delete(model, at, at+1)
				}
			default:
				got, ok := q.Pop()
				require.Equal(t, len(model) > 0, ok)
				if ok {
					best := slices.MinFunc(model, func(a, b value) int { return int(a.level) - int(b.level) })
					require.Equal(t, best, got)
					model = slices.Delete(model, slices.Index(model, best), slices.Index(model, best)+1)
				}
			}
			require.Equal(t, len(model), q.Len())
		}
	})
}
