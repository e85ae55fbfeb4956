/** Pointer and wheel input of the timeline, and its visible size. */
import { useEffect, useLayoutEffect, useMemo, useRef, useState, type PointerEvent, type RefObject } from "react";
import type { TimeRange } from "./range";

/** Drag to pan. A drag does not count as a click. */
export function useDrag(box: RefObject<HTMLDivElement | null>, range: TimeRange, width: number) {
  const from = useRef<{ id: number; x: number; moved: boolean } | null>(null);
  const wasMoved = useRef(false);
  const [active, setActive] = useState(false);
  return {
    active,
    moved: () => wasMoved.current,
    down: (event: PointerEvent) => {
      if (event.button) return;
      from.current = { id: event.pointerId, x: event.clientX, moved: false };
      wasMoved.current = false;
    },
    move: (event: PointerEvent): boolean => {
      const held = from.current;
      if (!held || held.id !== event.pointerId) return false;
      const away = event.clientX - held.x;
      if (!held.moved && Math.abs(away) < 5) return false;
      if (!held.moved) {
        held.moved = wasMoved.current = true;
        setActive(true);
        box.current?.setPointerCapture(event.pointerId);
      }
      held.x = event.clientX;
      range.pan(-away / width);
      return true;
    },
    up: () => {
      from.current = null;
      setActive(false);
    },
  };
}

/** Zoom with Ctrl + wheel, pan with Shift + wheel or sideways. The plain wheel scrolls the page. */
export function useWheel(box: RefObject<HTMLDivElement | null>, range: TimeRange): void {
  const latest = useRef(range);
  latest.current = range;
  useEffect(() => {
    const element = box.current!;
    const turned = (event: WheelEvent) => {
      const area = element.getBoundingClientRect();
      const sideways = event.deltaX || (event.shiftKey ? event.deltaY : 0);
      if (event.ctrlKey) latest.current.zoom(Math.exp(event.deltaY / 300), (event.clientX - area.left) / area.width);
      else if (sideways) latest.current.pan(sideways / area.width);
      else return;
      event.preventDefault();
    };
    element.addEventListener("wheel", turned, { passive: false });
    return () => element.removeEventListener("wheel", turned);
  }, [box]);
}

export function useWidth(box: RefObject<HTMLDivElement | null>): number {
  const [width, setWidth] = useState(640);
  useLayoutEffect(() => {
    const element = box.current!;
    const measure = () => setWidth(Math.max(120, element.clientWidth));
    measure();
    const watching = new ResizeObserver(measure);
    watching.observe(element);
    return () => watching.disconnect();
  }, [box]);
  return width;
}

export function useNarrow(): boolean {
  const query = useMemo(() => window.matchMedia("(max-width: 40rem)"), []);
  const [narrow, setNarrow] = useState(query.matches);
  useEffect(() => {
    const change = () => setNarrow(query.matches);
    query.addEventListener("change", change);
    return () => query.removeEventListener("change", change);
  }, [query]);
  return narrow;
}

/** Return the visible part of the lanes, rounded to 100 pixels to limit redraws. */
export function useSight(box: RefObject<HTMLDivElement | null>): [number, number] {
  const [sight, setSight] = useState<[number, number]>([0, 2_000]);
  useEffect(() => {
    const look = () => {
      const top = Math.round(-box.current!.getBoundingClientRect().top / 100) * 100;
      setSight((before) => (before[0] === top && before[1] === top + window.innerHeight ? before : [top, top + window.innerHeight]));
    };
    look();
    window.addEventListener("scroll", look, { passive: true });
    window.addEventListener("resize", look);
    return () => {
      window.removeEventListener("scroll", look);
      window.removeEventListener("resize", look);
    };
  }, [box]);
  return sight;
}
