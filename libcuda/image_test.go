package libcuda

import (
	"bytes"
	"encoding/binary"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"
)

// fat returns a fat binary with entries, each with its data behind it.
func fat(entries ...any) []byte {
	var all bytes.Buffer
	for _, one := range entries {
		_ = binary.Write(&all, binary.LittleEndian, one)
	}
	head := fatHeader{magic: fatMagic, version: 1, header: uint16(unsafe.Sizeof(fatHeader{})), size: uint64(all.Len())}
	return append(unsafe.Slice((*byte)(unsafe.Pointer(&head)), int(head.header)), all.Bytes()...)
}

// entryOf returns an entry as its bytes.
func entryOf(e fatEntry, data []byte) []byte {
	e.header, e.size = uint32(unsafe.Sizeof(e)), uint64(len(data))
	return append(append([]byte{}, unsafe.Slice((*byte)(unsafe.Pointer(&e)), unsafe.Sizeof(e))...), data...)
}

func TestU3_of_a_fat_binary_the_ptx_for_the_best_device_is_taken(t *testing.T) {
	image := fat(entryOf(fatEntry{kind: 2, capability: 80}, []byte("machine code")),
		entryOf(fatEntry{kind: ptxEntry, capability: 52}, []byte("old\x00")),
		entryOf(fatEntry{kind: ptxEntry, capability: 75}, []byte("best\x00")),
		entryOf(fatEntry{kind: ptxEntry, capability: 90}, []byte("newer\x00")))
	text, err := programIn(image)
	require.NoError(t, err)
	require.Equal(t, "best", text)
	text, err = programIn(fat(entryOf(fatEntry{kind: ptxEntry, capability: 90}, []byte("newer\x00"))))
	require.NoError(t, err)
	require.Equal(t, "newer", text)
}

func TestU3_machine_code_alone_is_refused_with_what_to_do(t *testing.T) {
	_, err := programIn(fat(entryOf(fatEntry{kind: 2, capability: 80}, []byte("machine code"))))
	require.Equal(t, noBinary, codeOf(err))
	require.ErrorContains(t, err, "code=compute_80")
	_, err = programIn(fat(entryOf(fatEntry{kind: ptxEntry, flags: zstdFlag}, []byte("x"))))
	require.Equal(t, noBinary, codeOf(err))
}

func TestU3_compressed_ptx_is_unpacked(t *testing.T) {
	// "abcabcabcabcabcabcabcabcabcabc" and "end": three letters, a match of 27 bytes 3 before, and the rest.
	packed := []byte{0x3f, 'a', 'b', 'c', 3, 0, 8, 0x30, 'e', 'n', 'd'}
	want := "abcabcabcabcabcabcabcabcabcabcend"
	text, err := programIn(fat(entryOf(fatEntry{kind: ptxEntry, flags: lz4Flag, compressed: uint32(len(packed)),
		plain: uint64(len(want))}, append(packed, 0, 0))))
	require.NoError(t, err)
	require.Equal(t, want, text)
	for n := range packed {
		_, err := unpackLZ4(packed[:n], uint64(len(want)))
		require.Error(t, err, n)
	}
	_, err = unpackLZ4([]byte{0x10, 'a', 9, 0}, 5)
	require.Error(t, err)
}

func TestU3_a_damaged_image_is_refused_where_it_ends(t *testing.T) {
	image := fat(entryOf(fatEntry{kind: ptxEntry, capability: 75}, []byte(".version 7.0\x00")))
	text, err := programOf(image)
	require.NoError(t, err)
	require.Equal(t, ".version 7.0", text)
	for n := range image {
		_, err := programOf(image[:n:n])
		require.Equal(t, invalidImage, codeOf(err), n)
	}
	for at := range int(unsafe.Sizeof(fatHeader{}) + unsafe.Sizeof(fatEntry{})) {
		for _, value := range []byte{0, 1, 0x7f, 0xff} {
			other := bytes.Clone(image)
			other[at] = value
			_, _ = programOf(other) // whatever it says now: it is not read beyond its end
		}
	}
	wrapper := fatWrapper{magic: wrapperMagic}
	_, err = programAt(unsafe.Pointer(&wrapper))
	require.Equal(t, invalidImage, codeOf(err))
	wrapper.data = uint64(uintptr(unsafe.Pointer(&wrapper)))
	_, err = programAt(unsafe.Pointer(&wrapper))
	require.Equal(t, invalidImage, codeOf(err))
}
