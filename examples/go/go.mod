module github.com/timer-platform/timer-platform/examples/go

go 1.25

require github.com/timer-platform/timer-platform/sdks/go v0.1.0

replace github.com/timer-platform/timer-platform/sdks/go => ../../sdks/go
