package libcuda

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestU1_a_message_is_written_once_and_there_is_an_end_of_them(t *testing.T) {
	var text strings.Builder
	log := messageLog{to: &text}
	log.write("lost", "cuA: lost")
	log.write("lost", "cuB: lost")
	require.Equal(t, "halstream: cuA: lost\n", text.String())
	for i := range 2 * mostMessages {
		one := fmt.Sprintf("cuA: %d", i)
		log.write(one, one)
	}
	lines := strings.Split(strings.TrimSpace(text.String()), "\n")
	require.Len(t, lines, mostMessages+1)
	require.Contains(t, lines[mostMessages], "are not written")
	require.Len(t, log.written, mostMessages)
}
