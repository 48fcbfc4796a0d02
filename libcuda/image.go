package libcuda

import (
	"bytes"
	"encoding/binary"
	"errors"
	"strings"
	"unsafe"

	"halstream/hal"
)

import "C"

// Images of programs: text of PTX, or binaries that hold it. Machine code of a GPU cannot run here.

// Beginnings of images, as numbers of 32 bits.
const (
	wrapperMagic = 0x466243b1 // a structure of a compiled program that points to its fat binary
	fatMagic     = 0xba55ed50
	elfMagic     = 0x464c457f
)

// onlyMachineCode says what to do about an image without PTX.
var onlyMachineCode = refuse(noBinary, "the program is machine code of a GPU only, which cannot run here; compile it so that it "+
	"holds PTX as well (nvcc -gencode arch=compute_80,code=compute_80), or load PTX or source")

// mostImage is more bytes than the image of a program has.
const mostImage = 1 << 40

var damaged = refuse(invalidImage, "the fat binary is damaged: it says that it has more than it has")

// fatWrapper is what a compiled program passes for its fat binary.
type fatWrapper struct {
	magic, version uint32
	data           uint64
	file           uint64
}

// fatHeader begins a fat binary.
type fatHeader struct {
	magic           uint32
	version, header uint16
	size            uint64 // behind the header
}

// fatEntry begins each program in it.
type fatEntry struct {
	kind, _      uint16
	header       uint32
	size         uint64 // behind the header
	compressed   uint32 // bytes of that, where it is compressed
	_            uint32
	minor, major uint16
	capability   uint32 // ten times that of the device
	_            [2]uint32
	flags        uint64
	_            uint64
	plain        uint64 // bytes when it is not compressed any more
}

// Kinds of entries, and their flags.
const (
	ptxEntry     = 1
	lz4Flag      = 0x2000
	zstdFlag     = 0x8000
	executorArch = 80 // the capability of the devices
)

// programAt returns the PTX of an image in the program's memory.
func programAt(image unsafe.Pointer) (string, error) {
	if image == nil {
		return "", refuse(invalidValue, "the image is NULL")
	}
	switch *(*uint32)(image) {
	case wrapperMagic:
		data := (*fatWrapper)(image).data
		if data == 0 || *pointerAt[uint32](data) == wrapperMagic {
			return "", refuse(invalidImage, "the image says that its fat binary is at %#x, where none is", data)
		}
		return programAt(unsafe.Pointer(pointerAt[byte](data)))
	case fatMagic:
		h := (*fatHeader)(image)
		if h.size > mostImage {
			return "", damaged
		}
		return programIn(unsafe.Slice((*byte)(image), uint64(h.header)+h.size))
	case elfMagic:
		return "", onlyMachineCode
	}
	return programText(C.GoString((*C.char)(image)))
}

// programOf returns the PTX of an image whose length is known.
func programOf(image []byte) (string, error) {
	if len(image) >= 4 {
		switch binary.LittleEndian.Uint32(image) {
		case wrapperMagic:
			return "", refuse(invalidImage, "the image does not hold its fat binary, but only says where that is in a process")
		case fatMagic:
			return programIn(image)
		case elfMagic:
			return "", onlyMachineCode
		}
	}
	text, _, _ := bytes.Cut(image, []byte{0})
	return programText(string(text))
}

func programText(text string) (string, error) {
	if !strings.Contains(text, ".version") {
		return "", refuse(invalidImage, "the image is no PTX: it begins with %q", text[:min(len(text), 20)])
	}
	return withRuntime(text), nil
}

// programIn returns the PTX in a fat binary: that for the most capable device which is not above those here, else that for
// the least.
func programIn(image []byte) (string, error) {
	headerSize, entrySize := uint64(unsafe.Sizeof(fatHeader{})), uint64(unsafe.Sizeof(fatEntry{}))
	if uint64(len(image)) < headerSize {
		return "", damaged
	}
	h := (*fatHeader)(unsafe.Pointer(&image[0]))
	at := uint64(h.header)
	if at < headerSize || at > uint64(len(image)) || h.size > uint64(len(image))-at {
		return "", damaged
	}
	image = image[:at+h.size]
	best, bestData := (*fatEntry)(nil), []byte(nil)
	for left := h.size; left >= entrySize; left = uint64(len(image)) - at {
		e := (*fatEntry)(unsafe.Pointer(&image[at]))
		if e.header == 0 {
			break // what follows is padding
		}
		data := uint64(e.header)
		if data < entrySize || data > left || e.size > left-data {
			return "", damaged
		}
		end := at + data + e.size
		if e.kind == ptxEntry && better(e, best) {
			best, bestData = e, image[at+data:end]
		}
		at = end
	}
	if best == nil {
		return "", onlyMachineCode
	}
	return best.text(bestData)
}

func better(e, than *fatEntry) bool {
	switch {
	case than == nil:
		return true
	case e.capability > executorArch:
		return than.capability > executorArch && e.capability < than.capability
	}
	return than.capability > executorArch || e.capability > than.capability
}

func (e *fatEntry) text(data []byte) (string, error) {
	switch {
	case e.flags&zstdFlag != 0:
		return "", refuse(noBinary, "the PTX in the program is compressed with zstd, which is not read here; compile with "+
			"-Xfatbin -compress-all=no, or --compress-mode=none")
	case e.flags&lz4Flag != 0:
		var err error
		if data, err = unpackLZ4(data[:min(uint64(e.compressed), uint64(len(data)))], e.plain); err != nil {
			return "", refuse(invalidImage, "the compressed PTX in the program is damaged: %v", err)
		}
	}
	text, _, _ := strings.Cut(string(data), "\x00")
	return withRuntime(text), nil
}

var errLZ4 = errors.New("a block of LZ4 ends early, or refers to bytes before its beginning")

// unpackLZ4 returns the bytes of a block of LZ4, which has a size when unpacked.
func unpackLZ4(in []byte, size uint64) (out []byte, err error) {
	defer func() {
		if recover() != nil {
			err = errLZ4
		}
	}()
	length := func(first int) int {
		if first < 15 {
			return first
		}
		for {
			more := in[0]
			in = in[1:]
			first += int(more)
			if more != 255 {
				return first
			}
		}
	}
	out = make([]byte, 0, min(size, 1<<30))
	for len(in) > 0 {
		token := in[0]
		in = in[1:]
		literals := length(int(token >> 4))
		out = append(out, in[:literals]...)
		if in = in[literals:]; len(in) == 0 {
			break
		}
		back := int(binary.LittleEndian.Uint16(in))
		in = in[2:]
		for range length(int(token&15)) + 4 {
			out = append(out, out[len(out)-back])
		}
	}
	if uint64(len(out)) != size {
		return nil, errLZ4
	}
	return out, nil
}

// load loads a program on a device.
func (c *caller) load(d *hal.Device, text string) (*hal.Module, error) {
	return d.LoadModule(c.t, append([]byte(text), 0))
}
