package cuda_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"halstream/cuda"
	"halstream/hal"
)

func TestAnotherLibraryIsRefusedWhileOneIsInUse(t *testing.T) {
	f := fake(t)
	first, err := cuda.Open(f.Path)
	require.NoError(t, err)
	defer first.Close()
	code, err := os.ReadFile(f.Path)
	require.NoError(t, err)
	other := filepath.Join(t.TempDir(), "libcuda.so.1")
	require.NoError(t, os.WriteFile(other, code, 0o600))
	_, err = cuda.Open(other)
	require.ErrorIs(t, err, hal.ErrAbsent)
	require.ErrorContains(t, err, "uses already")
	again, err := cuda.Open(f.Path)
	require.NoError(t, err, "the same one may be opened twice")
	again.Close()
}
