-- Views over the tables of `asynctriage batch -o out`, for DuckDB, from the folder `out`.
create or replace view dumps as select * from read_parquet('parquet/dumps/*/*/*.parquet', hive_partitioning = true, hive_types_autocast = false, union_by_name = true);
create or replace view chains as select * from read_parquet('parquet/chains/*/*/*.parquet', hive_partitioning = true, hive_types_autocast = false, union_by_name = true);
create or replace view findings as select * from read_parquet('parquet/findings/*/*/*.parquet', hive_partitioning = true, hive_types_autocast = false, union_by_name = true);
create or replace view requests as select * from read_parquet('parquet/requests/*/*/*.parquet', hive_partitioning = true, hive_types_autocast = false, union_by_name = true);
create or replace view calls as select * from read_parquet('parquet/calls/*/*/*.parquet', hive_partitioning = true, hive_types_autocast = false, union_by_name = true);
create or replace view waits as select * from read_parquet('parquet/waits/*/*/*.parquet', hive_partitioning = true, hive_types_autocast = false, union_by_name = true);
