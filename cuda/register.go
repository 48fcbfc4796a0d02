package cuda

import (
	"halstream/hal"
	"halstream/hal/driver"
)

func init() {
	hal.Register("cuda", 1, func() (driver.Driver, error) {
		d, err := Open("")
		if err != nil {
			return nil, err
		}
		return d, nil
	})
}
