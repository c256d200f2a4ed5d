// SPDX-License-Identifier: Apache-2.0
// The sphere seen from outside (an orthographic projection), and numbers in base64.
"use strict";

const kDegrees = 180 / Math.PI;

function decodeBytes(text) {
  const letters = atob(text), bytes = new Uint8Array(letters.length);
  for (let i = 0; i < bytes.length; ++i) bytes[i] = letters.charCodeAt(i);
  return bytes;
}

// Numbers of 32 bits, little-endian, in base64.
function decodeFloats(text) { return new Float32Array(decodeBytes(text).buffer); }

// Unit vectors (N, 3) of coordinates in radians.
function unitVectors(lat, lon) {
  const xyz = new Float32Array(3 * lat.length);
  for (let i = 0; i < lat.length; ++i) {
    const c = Math.cos(lat[i]);
    xyz[3 * i] = c * Math.cos(lon[i]);
    xyz[3 * i + 1] = c * Math.sin(lon[i]);
    xyz[3 * i + 2] = Math.sin(lat[i]);
  }
  return xyz;
}

// What is in the middle of the canvas, in radians, and how large the globe is.
class SphereView {
  constructor(lat, lon) {
    Object.assign(this, {lat, lon, zoom: 1, width: 1, height: 1, scale: 1});
  }
  // Sets up the axes of the screen: right, up, towards the eye.
  prepare() {
    const sa = Math.sin(this.lat), ca = Math.cos(this.lat);
    const so = Math.sin(this.lon), co = Math.cos(this.lon);
    this.right = [-so, co, 0];
    this.up = [-sa * co, -sa * so, ca];
    this.eye = [ca * co, ca * so, sa];
    this.scale = this.zoom * 0.46 * Math.min(this.width, this.height);
  }
  turned(v) {
    const dot = a => a[0] * v[0] + a[1] * v[1] + a[2] * v[2];
    return [dot(this.right), dot(this.up), dot(this.eye)];
  }
  // Writes x and y on the canvas and the height above its plane.
  project(xyz, i, out) {
    const x = xyz[3 * i], y = xyz[3 * i + 1], z = xyz[3 * i + 2];
    const r = this.right, u = this.up, e = this.eye;
    out[0] = this.width / 2 + this.scale * (r[0] * x + r[1] * y + r[2] * z);
    out[1] = this.height / 2 - this.scale * (u[0] * x + u[1] * y + u[2] * z);
    out[2] = e[0] * x + e[1] * y + e[2] * z;
  }
  // The direction under a point of the canvas, or null beside the globe.
  direction(px, py) {
    const x = (px - this.width / 2) / this.scale, y = (this.height / 2 - py) / this.scale;
    const z2 = 1 - x * x - y * y;
    if (z2 < 0) return null;
    const z = Math.sqrt(z2);
    return [0, 1, 2].map(d => x * this.right[d] + y * this.up[d] + z * this.eye[d]);
  }
  // Turns as a hand on the globe would that moves so far.
  turn(dx, dy) {
    this.lon -= dx / this.scale;
    this.lat = Math.max(-Math.PI / 2, Math.min(Math.PI / 2, this.lat + dy / this.scale));
  }
}
