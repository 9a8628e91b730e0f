# Read a release and synthetic rows in R, with the package arrow.
#
#   Rscript release.R people.release.parquet synthetic.parquet
#
# A release has one row for each cell of each table: set, table, attrs, level_1, level_2, ..., count. Where it has a column rows, that is the noisy count.

arguments <- commandArgs(trailingOnly = TRUE)
release_file <- if (length(arguments) >= 1) arguments[[1]] else "people.release.parquet"
rows_file <- if (length(arguments) >= 2) arguments[[2]] else "synthetic.parquet"

cells <- as.data.frame(arrow::read_parquet(release_file))
rows <- as.data.frame(arrow::read_parquet(rows_file))

# The first table of the release, as a matrix of noisy counts. Some may be negative: that is what unbiased noise looks like.
if ("rows" %in% names(cells)) cells$count <- cells$rows
first <- cells[cells$table == cells$table[[1]], ]
first$level_1 <- factor(first$level_1, levels = unique(first$level_1))
first$level_2 <- factor(first$level_2, levels = unique(first$level_2))
cat("Noisy counts of", as.character(first$attrs[[1]]), "\n")
print(xtabs(count ~ level_1 + level_2, data = first))

# What was done, by the release's own words.
metadata <- arrow::ParquetFileReader$create(release_file)$GetSchema()$metadata$dpcipher
cat("The statement has", nchar(metadata), "characters of JSON; see jsonlite::fromJSON\n")

# Synthetic rows are a data frame like any other.
cat(nrow(rows), "synthetic rows\n")
print(summary(rows))
