package timer

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"
)

const day = 24 * time.Hour

// Duration of an answer: a [time.Duration] that is written as the service writes it.
type Duration time.Duration

// UnmarshalJSON reads a duration as the service writes it; null is 0.
func (d *Duration) UnmarshalJSON(text []byte) error {
	var written string
	if err := json.Unmarshal(text, &written); err != nil || written == "" {
		return err
	}
	parsed, err := ParseDuration(written)
	*d = Duration(parsed)
	return err
}

// MarshalJSON writes it as the service does.
func (d Duration) MarshalJSON() ([]byte, error) { return json.Marshal(d.String()) }

func (d Duration) String() string { return FormatDuration(time.Duration(d)) }

// FormatDuration writes a duration for the service: 1h30m, 1d, 250ms. What is shorter than a microsecond is rounded up.
func FormatDuration(d time.Duration) string {
	if d < 0 {
		return "-" + FormatDuration(-d)
	}
	if rest := d % time.Microsecond; rest != 0 {
		d += time.Microsecond - rest
	}
	if d == 0 {
		return "0s"
	}
	var text strings.Builder
	for _, unit := range []struct {
		name string
		size time.Duration
	}{{"d", day}, {"h", time.Hour}, {"m", time.Minute}, {"s", time.Second}, {"ms", time.Millisecond}, {"us", time.Microsecond}} {
		if d >= unit.size {
			fmt.Fprintf(&text, "%d%s", d/unit.size, unit.name)
			d %= unit.size
		}
	}
	return text.String()
}

// ParseDuration reads what [FormatDuration] writes: as [time.ParseDuration], with days in front.
func ParseDuration(text string) (time.Duration, error) {
	days, rest, found := strings.Cut(text, "d")
	if !found {
		return time.ParseDuration(text)
	}
	count, err := strconv.ParseUint(days, 10, 16)
	if err != nil {
		return 0, fmt.Errorf("timer: %q is not a duration", text)
	}
	total := time.Duration(count) * day
	if rest == "" {
		return total, nil
	}
	parsed, err := time.ParseDuration(rest)
	return total + parsed, err
}
