module urlstore

go 1.19
