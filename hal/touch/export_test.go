package touch

// SetPatience sets how long Begin waits.
var SetPatience = setPatience
