"""Word lists that decide the types of cells: missing values, units, and headers that tell the type of a column."""

from __future__ import annotations

import re
from typing import Final


def words(text: str, mark: str | None = None) -> frozenset[str]:
    """Return the words of a text, or its parts between marks."""
    return frozenset(" ".join(word.split()) for word in text.split(mark))


#: A missing cell, white space collapsed and case folded.
MISSING: Final = frozenset(("", "n/a", "n.a.", "#n/a", "null", "-", "–", "—", "−", "--", "––", "——", "---", "–––", "———"))
MISSING_NUMBERS: Final = frozenset(("nan", "na", "#value!", "#div/0!"))
#: Units that are recognised even in a single cell; case-sensitive, with plurals listed.
KNOWN_UNITS: Final = words(
    """
    mm; cm; dm; m; km; mi; mile; miles; ft; foot; feet; in; inch; inches; yd; yard; yards; nmi; furlong; furlongs; metre; metres;
    meter; meters; kilometre; kilometres; kilometer; kilometers; centimetre; centimetres; centimeter; centimeters; millimetre;
    millimetres; nautical miles; km²; km2; m²; m2; cm²; cm2; ha; hectare; hectares; acre; acres; sq mi; sq km; sq ft; sq m;
    square miles; square kilometres; square kilometers; square feet; square metres; square meters; m³; m3; cm³; cm3; km³; km3; cc;
    kg; g; mg; µg; lb; lbs; pound; pounds; oz; ounce; ounces; tonne; tonnes; ton; tons; kilogram; kilograms; gram; grams;
    l; L; litre; litres; liter; liters; ml; mL; cl; hl; gal; gallon; gallons; s; sec; secs; second; seconds; ms; min; mins; minute;
    minutes; h; hr; hrs; hour; hours; day; days; week; weeks; month; months; year; years; km/h; kph; mph; m/s; kn; kt; knots; km/s;
    °C; °F; °; kW; MW; GW; kWh; MWh; GWh; TWh; hp; bhp; PS; kV; mV; mA; Hz; kHz; MHz; GHz; THz; Nm; kB; KB; MB; GB; TB; KiB; MiB;
    GiB; bit; bits; byte; bytes; kbit/s; Mbit/s; Gbit/s; kbps; Mbps; Gbps; bps; Pa; hPa; kPa; MPa; psi; bar; mbar; kJ; MJ; kcal;
    dB; dBA; rpm; ppm
    """,
    ";",
)
#: Words that follow a number and are never its unit.
NO_UNITS: Final = words(
    """
    jan feb mar apr may jun jul aug sep sept oct nov dec january february march april june july august september october
    november december am pm a.m p.m a.m. p.m. bc bce ad ce b.c. a.d. st nd rd th and or to of the in at by vs v x on from for
    with autumn winter spring summer
    """
)
#: Header words that make four digits a year; the second set only if it is the whole header.
YEAR_WORDS: Final = words(
    """
    year years yr season seasons date dates since until founded established opened closed built completed introduced released
    release launched launch formed foundation formation created joined elected election inaugurated debut debuted premiere
    premiered published publication born birth died death construction constructed incorporated incorporation commissioned
    decommissioned retired dissolved disbanded abolished abandoned commenced begun began beginning withdrawn ended expires
    appointed inducted issued awarded installed identified isolated designated discovered signed ratified adopted worn
    notified established establishment est demolished ordained enacted
    """
)
YEAR_HEADERS: Final = words(
    """
    from; to; start; end; ends; begin; first; last; latest; in service; took office; left office; held; first held; last
    final; entered competition; start of term; end of term; term; vintage; when; time; period
    """,
    ";",
)
CERTAIN_YEAR_WORDS: Final = words(
    """
    year years yr season seasons date dates
    """
)
#: Words that override a year word in the header: "number built".
AMOUNT_WORDS: Final = words(
    """
    number no total count amount population size height cost price capacity attendance length weight votes points units sales
    elevation area distance rank speed power pop people inhabitants einwohner residents passengers visitors users views
    salary salaries income revenue amounts
    """
)
#: Header words that make 20240131 a day, also as parts of words: "startdate".
DAY_WORDS: Final = re.compile(
    r"date(?!\w*base)|datum|fecha|yyyymmdd|\bday\b|\btag\b|\bd[aio]?t\b|timestamp|\bts\b|[^\W_]_at\b|\bdob\b"
)
#: Header words that make 2004-05 a month, and those that make 1.10 a code different from 1.1.
MONTH_WORDS: Final = words(
    """
    month months monat mois mes mese maand date dates day datum fecha when time timestamp ym yyyymm born birth died death
    published publication released release issued signed
    """
)
CODE_WORDS: Final = words(
    """
    version versions ver release releases revision rev firmware section sections chapter clause paragraph code codes id ids ref
    nace isic sic naics
    """
)
#: Header words of integer counts, and those that make it a scaled or averaged count.
WHOLE_WORDS: Final = words(
    """
    population people inhabitants einwohner bevölkerung residents habitants abitanti habitantes votes attendance passengers
    visitors households employees students
    """
)
SCALE_WORDS: Final = words("thousand thousands million millions mio tsd k m mean average avg per growth density")
SEASON_WORDS: Final = words(
    """
    season seasons years career term period tenure span duration reign
    """
)
CLOCK_WORDS: Final = re.compile(
    r"\b(?:kick-?off|tip-?off|start|starts|end|ends|utc|gmt|[ecmp][sd]?t|cest|departure|arrival|departs?|arrives?|opens?|closes?"
    r"|sunrise|sunset|local|time of day|clock|hour)\b"
)
DURATION_WORDS: Final = re.compile(
    r"\b(?:length|duration|running|runtime|run time|laps?|split|result|performance|notes|elapsed|delta|gap|interval|finish|delay"
    r"|race|record|best|m:ss?|mm:ss|h:mm?:ss?|hh:mm:ss|minutes|played|retired)\b"
)
MONEY_WORDS: Final = re.compile(
    r"\b(?:profits?|loss(?:es)?|net|income|balance|amounts?|cash|earnings|revenues?|surplus|deficit|result|ebitda|debit|credit"
    r"|turnover|betrag|saldo|umsatz|montant|solde|importe|bedrag|kwota)\b"
)
