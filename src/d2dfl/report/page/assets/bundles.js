// Links put together: one arrow for all that goes from one cluster to another.
function middleOf(points) {
  return [0, 1].map((axis) => sum(points.map((point) => point[axis])) / points.length);
}

// Where the arrows of a cluster meet: its middle, or the nearest place to it around which no device hides their heads.
function meeting(map, cluster) {
  const [x, y] = middleOf(map.devices.filter((_, device) => map.cluster[device] === cluster));
  const free = ([across, down], room) => map.devices.every(([a, b]) => Math.hypot(a - across, b - down) >= room);
  for (const room of [2 * map.radius, map.radius + 3])
    for (let ring = 0; ring < 9; ring += 1)
      for (let step = 0; step < (ring ? 12 : 1); step += 1) {
        const [turn, far] = [(Math.PI * step) / 6, 0.5 * ring * map.radius];
        const place = [x + far * Math.cos(turn), y + far * Math.sin(turn)];
        if (free(place, room)) return place;
      }
  return [x, y];
}

function bundled(map, links) {
  const groups = new Map();
  for (const link of links) {
    const [from, to] = [map.cluster[link.from], map.cluster[link.to]];
    if (from === to) continue;
    const key = `${from} ${to}`;
    if (!groups.has(key)) groups.set(key, { from, to, links: [] });
    groups.get(key).links.push(link);
  }
  const clusters = [...new Set(map.cluster)].sort((a, b) => a - b);
  map.meetings ||= new Map(clusters.map((cluster) => [cluster, meeting(map, cluster)]));
  const places = map.meetings;
  return [...groups.values()].map(({ from, to, links: parts }) => {
    const [start, end] = [places.get(from), places.get(to)];
    const amounts = new Map();
    for (const link of parts)
      for (const [partition, value] of link.amounts) amounts.set(partition, (amounts.get(partition) || 0) + value);
    const sent = sum([...amounts.values()]);
    const arrives = sum(parts.map((link) => (1 - link.loss) * sum(link.amounts.map(([, value]) => value))));
    const went = parts.every((link) => link.went.length)
      ? [0, 1].map((place) => sum(parts.map((link) => link.went[place])))
      : [];
    return {
      from,
      to,
      start,
      end,
      bend: [0.5 * (start[0] + end[0]) - 0.15 * (end[1] - start[1]), 0.5 * (start[1] + end[1]) + 0.15 * (end[0] - start[0])],
      parts,
      loss: sent ? 1 - arrives / sent : 0,
      level: 1,
      trusted: null,
      amounts: [...amounts.entries()].sort((a, b) => a[0] - b[0]),
      went,
    };
  });
}
