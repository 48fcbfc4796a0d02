package ascend

import (
	"halstream/hal"
	"halstream/hal/driver"
)

func init() {
	hal.Register("ascend", 2, func() (driver.Driver, error) {
		d, err := Open("")
		if err != nil {
			return nil, err
		}
		return d, nil
	})
}
