#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares the scores of `aifs-train verify` with those of numpy, xarray and the package `scores` on the same files.

    check_scores.py PROGRAM FOLDER

Writes random forecasts of three members, their truth and observations at stations to FOLDER, has PROGRAM score them,
and computes every figure again from the files. Exit code 1 if one differs by more than 1e-6 of its size, 77 if Python
lacks numpy, xarray, netCDF4 or scores (pip install them)."""
import json
import pathlib
import subprocess
import sys

try:
    import numpy as np
    import scores.categorical
    import scores.continuous
    import scores.probability
    import xarray as xr
except ImportError as error:
    print(f"skipped: {error}")
    sys.exit(77)

ROWS, COLUMNS, MEMBERS = 8, 16, 3
LEADS_H = [6, 12, 24]
STARTS = np.array(["2020-02-20", "2020-02-25T12", "2020-02-28T18", "2020-03-02"], "datetime64[s]")
WINDOW = 11
LIMIT = 1e-6
worst: dict[str, float] = {}


def gaussian_latitudes() -> np.ndarray:
    return np.degrees(np.arcsin(np.polynomial.legendre.leggauss(ROWS)[0][::-1]))


def write_files(folder: pathlib.Path) -> tuple[xr.Dataset, list[xr.Dataset]]:
    random = np.random.default_rng(1)
    axes = {"latitude": ("latitude", gaussian_latitudes(), {"units": "degrees_north"}),
            "longitude": ("longitude", 22.5 * np.arange(COLUMNS), {"units": "degrees_east"})}
    dates = np.arange(np.datetime64("2018-01-01"), np.datetime64("2020-03-05"), np.timedelta64(6, "h"))
    cells = (ROWS, COLUMNS)
    season = np.cos(2 * np.pi * np.arange(len(dates)) / 1461)[:, None, None]
    truth = xr.Dataset({
        "t": (("time", "latitude", "longitude"),
              (280 + 10 * season + random.normal(size=(len(dates), *cells))).astype("f4")),
        "tp": (("time", "latitude", "longitude"),
               np.maximum(0, random.normal(size=(len(dates), *cells))).astype("f4"))},
        coords={"time": dates.astype("datetime64[ns]"), **axes})
    truth.to_netcdf(folder / "truth.nc", encoding={"time": {"units": "hours since 2018-01-01", "dtype": "f8"}})
    forecasts = []
    for start in STARTS:
        valid = start + np.array(LEADS_H) * np.timedelta64(3600, "s")
        at = truth.sel(time=valid.astype("datetime64[ns]"))
        fields = {}
        for name in ("t", "tp"):
            noise = random.normal(size=(len(LEADS_H), MEMBERS, *cells))
            values = at[name].values[:, None] + 0.7 * noise
            fields[name] = (("time", "member", "latitude", "longitude"),
                            (np.maximum(0, values) if name == "tp" else values).astype("f4"))
        forecast = xr.Dataset(fields, coords={"time": ("time", 3600.0 * np.array(LEADS_H), {
            "units": f"seconds since {str(start).replace('T', ' ')}"}), "member": np.arange(MEMBERS), **axes})
        forecast.to_netcdf(folder / "forecasts" / f"forecast-{str(start).replace(':', '')}.nc")
        forecasts.append(forecast.assign_coords(time=valid.astype("datetime64[ns]")))
    lines = ["station,latitude,longitude,time,t"]
    for station in range(20):
        place = f"S{station},{random.uniform(-75, 75):.3f},{random.uniform(0, 360):.3f}"
        for date in dates[-60:]:
            lines.append(f"{place},{np.datetime_as_string(date, 'm')},{random.normal(280, 5):.3f}")
    (folder / "stations.csv").write_text("\n".join(lines) + "\n")
    config = {"run": {"dir": str(folder / "run"), "device": "cpu"},
              "data": {"dataset": {"netcdf": [str(folder / "truth.nc")]}, "training": {"end": "2019"},
                       "validation": {"start": "2020"}},
              "graph": {"grid": "dataset", "hidden": {"refinement": 1}}}
    (folder / "config.json").write_text(json.dumps(config))
    return truth, forecasts


def compare(what: str, found: float | None, wanted: float) -> None:
    found = np.nan if found is None else found
    if np.isnan(found) and np.isnan(wanted):
        return
    difference = abs(found - wanted) / max(abs(wanted), 1e-3)
    worst[what] = max(worst.get(what, 0.0), difference if np.isfinite(difference) else np.inf)


def day_of_leap_year(times: xr.DataArray) -> np.ndarray:
    return np.array([(np.datetime64(f"2020-{str(t)[5:10]}") - np.datetime64("2020-01-01")).astype(int)
                     for t in times.values])


def climatology(truth: xr.DataArray, valid: np.datetime64) -> np.ndarray:
    days = day_of_leap_year(truth.time)
    own = day_of_leap_year(xr.DataArray(np.array([valid])))[0]
    apart = np.abs(days - own)
    apart = np.minimum(apart, 366 - apart)
    half = (WINDOW - 1) // 2
    weights = np.where(apart <= half, 1 - apart / (half + 1), 0.0)
    hours = truth.time.dt.hour.values
    weights = np.where(hours == (valid.astype("datetime64[h]").astype(int) % 24), weights, 0.0)
    return np.tensordot(weights, truth.values.astype("f8"), 1) / weights.sum()


def expected(truth: xr.Dataset, forecasts: list[xr.Dataset], variable: str, lead: int, weights: xr.DataArray) -> dict:
    """Every figure of one variable and lead time, the means over forecasts of what the packages say of each."""
    sums: dict[str, list[float]] = {}
    tables = []

    def put(name: str, value) -> None:
        sums.setdefault(name, []).append(float(np.squeeze(value)))

    for start, forecast in zip(STARTS, forecasts):
        fields = forecast[variable].isel(time=lead).astype("f8")
        valid = fields.time.values
        wanted = truth[variable].sel(time=valid).astype("f8")
        first = truth[variable].sel(time=start.astype("datetime64[ns]")).astype("f8")
        usual = xr.DataArray(climatology(truth[variable], valid), dims=wanted.dims, coords=wanted.coords)
        mean = fields.mean("member")
        put("mse", scores.continuous.mse(mean, wanted, weights=weights))
        put("bias", scores.continuous.additive_bias(mean, wanted, weights=weights))
        put("mae", scores.continuous.mae(mean, wanted, weights=weights))
        put("persistence", scores.continuous.mse(first, wanted, weights=weights))
        put("climatology", scores.continuous.mse(usual, wanted, weights=weights))
        put("crps", scores.probability.crps_for_ensemble(fields, wanted, "member", method="fair", weights=weights))
        put("spread", fields.var("member", ddof=1).weighted(weights).mean())
        put("activity", mean.weighted(weights).var())
        put("acc", xr.corr(mean - usual, wanted - usual, weights=weights))
        below = (fields < wanted).sum("member")
        for rank in range(MEMBERS + 1):
            put(f"rank{rank}", (below == rank).weighted(weights).mean())
        for threshold in (0.5, 1.5):
            event = scores.categorical.ThresholdEventOperator(default_event_threshold=threshold)
            shares = {}
            for member in range(MEMBERS):
                table = event.make_event_tables(fields.isel(member=member), wanted)
                hit = (table[0] * table[1]).weighted(weights).mean()
                shares["hits"] = shares.get("hits", 0) + hit / MEMBERS
                for name, (f, t) in {"misses": (1 - table[0], table[1]), "false_alarms": (table[0], 1 - table[1])}.items():
                    shares[name] = shares.get(name, 0) + (f * t).weighted(weights).mean() / MEMBERS
            tables.append((threshold, {name: float(value) for name, value in shares.items()}))
            put(f"brier{threshold}", scores.probability.brier_score_for_ensemble(
                fields, wanted, "member", threshold, weights=weights, fair_correction=False))
    result = {name: float(np.mean(values)) for name, values in sums.items()}
    for threshold in (0.5, 1.5):
        own = [table for limit, table in tables if limit == threshold]
        a, b, c = (np.mean([table[name] for table in own]) for name in ("hits", "false_alarms", "misses"))
        chance = (a + b) * (a + c)
        result[f"ets{threshold}"] = (a - chance) / (a + b + c - chance)
        result[f"bias{threshold}"] = (a + b) / (a + c)
        result[f"far{threshold}"] = b / (a + b)
        result[f"pod{threshold}"] = a / (a + c)
    return result


def compare_row(row: dict, wanted: dict) -> None:
    for key, value in {"rmse": wanted["mse"] ** 0.5, "bias": wanted["bias"], "mae": wanted["mae"],
                       "persistence_rmse": wanted["persistence"] ** 0.5, "crps": wanted["crps"],
                       "climatology_rmse": wanted["climatology"] ** 0.5, "spread": wanted["spread"] ** 0.5,
                       "activity": wanted["activity"] ** 0.5, "acc": wanted["acc"],
                       "skill_against_climatology": 1 - (wanted["mse"] / wanted["climatology"]) ** 0.5}.items():
        compare(key, row[key], value)
    if row["variable"] == "t":  # of tp members and truth are often equal
        for rank in range(MEMBERS + 1):
            compare("rank_histogram", row["rank_histogram"][rank], wanted[f"rank{rank}"])
        return
    for event in row["thresholds"]:
        limit = event["threshold"]
        for key, name in {"ets": "ets", "frequency_bias": "bias", "far": "far", "pod": "pod", "brier": "brier"}.items():
            compare(key, event[key], wanted[f"{name}{limit}"])


def compare_spectra(folder: pathlib.Path, truth: xr.Dataset, forecasts: list[xr.Dataset]) -> None:
    weights = np.cos(np.radians(gaussian_latitudes()))
    for line in (folder / "scores" / "spectra.jsonl").read_text().splitlines():
        row = json.loads(line)
        if row["kind"] != "zonal":
            continue
        powers = []
        for forecast in forecasts:
            fields = forecast[row["variable"]].isel(time=LEADS_H.index(int(row["lead_time_h"])))
            wanted = truth[row["variable"]].sel(time=fields.time.values).values.astype("f8")
            for member in range(MEMBERS):
                wave = np.fft.rfft(fields.isel(member=member).values.astype("f8") - wanted, axis=-1) / COLUMNS
                power = 2 * np.abs(wave) ** 2
                power[:, [0, -1]] /= 2
                powers.append(np.average(power, axis=0, weights=weights))
        for m, power in enumerate(np.mean(powers, axis=0)):
            compare("zonal error power", row["error"][m], power)


def compare_stations(folder: pathlib.Path, forecasts: list[xr.Dataset]) -> None:
    table = np.genfromtxt(folder / "stations.csv", delimiter=",", skip_header=1, dtype=None, encoding=None)
    lat, lon = (np.radians(axis.ravel()) for axis in np.meshgrid(
        gaussian_latitudes(), 22.5 * np.arange(COLUMNS), indexing="ij"))
    for line in (folder / "scores" / "stations.jsonl").read_text().splitlines():
        row = json.loads(line)
        errors = []
        for forecast in forecasts:
            fields = forecast["t"].isel(time=LEADS_H.index(int(row["lead_time_h"])))
            mean = fields.values.astype("f8").mean(axis=0).ravel()
            valid = np.datetime_as_string(fields.time.values, "m")
            for _, station_lat, station_lon, date, value in table:
                if date != valid:
                    continue
                a, b = np.radians(station_lat), np.radians(station_lon)
                angle = np.arccos(np.sin(a) * np.sin(lat) + np.cos(a) * np.cos(lat) * np.cos(lon - b))
                errors.append(mean[np.argmin(angle)] - np.float32(value))
        compare("observations", row["observations"], len(errors))
        compare("station rmse", row["rmse"], np.sqrt(np.mean(np.square(errors))))
        compare("station bias", row["bias"], np.mean(errors))


def main() -> int:
    program, folder = sys.argv[1], pathlib.Path(sys.argv[2])
    (folder / "forecasts").mkdir(parents=True, exist_ok=True)
    truth, forecasts = write_files(folder)
    subprocess.run([program, "verify", str(folder / "forecasts"), "--config", str(folder / "config.json"),
                    "--out", str(folder / "scores"), "--climatology", "compute", "--climatology-window", str(WINDOW),
                    "--thresholds", "tp=0.5,1.5", "--spectra", "zonal,degree",
                    "--stations", str(folder / "stations.csv")], check=True)
    weights = xr.DataArray(np.cos(np.radians(gaussian_latitudes())), dims="latitude",
                           coords={"latitude": truth.latitude.values}).broadcast_like(truth["t"].isel(time=0, drop=True))
    opened = xr.open_dataset(folder / "scores" / "scores.nc")
    for line in (folder / "scores" / "scores.jsonl").read_text().splitlines():
        row = json.loads(line)
        compare_row(row, expected(truth, forecasts, row["variable"], LEADS_H.index(int(row["lead_time_h"])), weights))
        place = {"variable": row["variable"], "lead_time": row["lead_time_h"], "region": row["region"]}
        compare("scores.nc", row["rmse"], float(opened["rmse"].sel(place)))
    compare_spectra(folder, truth, forecasts)
    compare_stations(folder, forecasts)
    for name, difference in worst.items():
        print(f"{name:28} differs by {difference:.1e} at most")
    return 1 if not worst or max(worst.values()) > LIMIT else 0


if __name__ == "__main__":
    sys.exit(main())
